package sequencer

import "ledgerd/engine/ledger"

// maxEventData bounds the data of a block or of base state: its record, and its line of an export, have to be read back in one piece.
const maxEventData = 40 << 20

// heldData returns writes without the data that is not held, nil where that is true of them already. No data is held of accounts of programs
// that were not chosen, nor beyond what an event may tell; it is not known then. Records have what is held, so another choice needs another
// ledger. That an account was only read matters to data alone.
func (s *Sequencer) heldData(writes []ledger.AccountWrite) (held []ledger.AccountWrite) {
	size := 0
	for i := range writes {
		w := &writes[i]
		switch {
		case w.Known&ledger.FieldData == 0 && (!w.ReadOnly || s.data != nil):
			continue
		case w.Known&ledger.FieldData != 0 && w.Known&ledger.FieldOwner != 0 && s.data.Keep(&w.Owner) && size+w.Data.Len() <= maxEventData:
			size += w.Data.Len()
			continue
		}
		if held == nil {
			held = append(held, writes...) // the source's own never change
		}
		held[i].Known, held[i].Data, held[i].ReadOnly = w.Known&^ledger.FieldData, ledger.Data{}, false
	}
	return held
}

// withHeldData returns an event without the data that is not held, which may be the event itself. writes returns where its writes are.
func withHeldData[E any](s *Sequencer, e *E, writes func(*E) *[]ledger.AccountWrite) *E {
	held := s.heldData(*writes(e))
	if held == nil {
		return e
	}
	less := *e
	*writes(&less) = held
	return &less
}
