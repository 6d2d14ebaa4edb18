package nodetest

import (
	"bytes"
	"crypto/sha256"

	"ledgerd/engine/ledger"
)

// spoil returns what comes instead of a message: nothing, it, or something wrong.
func (s *subscriber) spoil(m *message) []*message {
	faults := &s.node.faults
	omitted := func(kind FaultKind) bool { _, hit := faults.take(kind); return hit }
	switch {
	case m.kind == metaMessage && omitted(OmitMeta),
		m.kind == transactionMessage && omitted(OmitTx),
		m.kind == slotMessage && m.status <= slotFinalized && omitted(OmitProcessed+FaultKind(m.status)):
		return nil
	case m.kind == metaMessage:
		if f, hit := faults.take(WrongParent, Equivocate); hit {
			return wrongMeta(m, f)
		}
	}
	return []*message{m}
}

// wrongMeta returns a block's meta with a wrong parent or another hash.
func wrongMeta(m *message, f Fault) []*message {
	wrong, b := *m, *m.block
	wrong.block = &b
	switch {
	case f.Kind == Equivocate:
		b.Blockhash = sha256.Sum256(b.Blockhash[:])
		if f.How == 1 {
			return []*message{m, &wrong}
		}
	case f.How == 1 && b.ParentSlot > 0:
		b.ParentSlot--
	default:
		// Another hash than Equivocate's: together they would be a chain that contradicts nothing.
		b.PreviousBlockhash = ledger.Some(ledger.Hash(sha256.Sum256(append([]byte("parent"), b.PreviousBlockhash.Value[:]...))))
	}
	return []*message{&wrong}
}

// garbage is a message that no server would send.
var garbage = bytes.Repeat([]byte{0xff, 0x07, 0x9c}, 40)
