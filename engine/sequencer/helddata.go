package sequencer

import "ledgerd/engine/ledger"

// maxEventData bounds the data of a block or of base state, since its record, and its line of an export, are read back in one piece.
const maxEventData = 40 << 20

// heldData returns a copy of writes without the data that the node does not hold, or nil if there is no such data. The node does
// not hold the data of accounts of programs that were not chosen, nor data above maxEventData; such data becomes unknown. Records
// have only the data that is held, so another choice of programs needs another ledger. ReadOnly matters only where data is held.
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

// withHeldData returns an event without the data that is not held; it is e itself if e has none. writes returns a pointer to the
// event's writes.
func withHeldData[E any](s *Sequencer, e *E, writes func(*E) *[]ledger.AccountWrite) *E {
	held := s.heldData(*writes(e))
	if held == nil {
		return e
	}
	less := *e
	*writes(&less) = held
	return &less
}
