package testnode

import (
	"bytes"
	"crypto/sha256"

	"google.golang.org/protobuf/encoding/protowire"

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

// garbageWays is how many ways there are for a message to be nonsense.
const garbageWays = 8

// garbage returns a message that no server would send.
func garbage(how int) []byte {
	field := func(n protowire.Number, part []byte) []byte { return wire(nil).bytes(n, part) }
	switch how % garbageWays {
	case 1: // cut short: the length says more than there is
		whole := field(protowire.Number(metaMessage), bytes.Repeat([]byte{1}, 80))
		return whole[:len(whole)/2]
	case 2: // a length beyond all bounds
		return append(protowire.AppendTag(nil, protowire.Number(accountMessage), protowire.BytesType), 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f)
	case 3: // nested deeply
		b := []byte{}
		for range 2000 {
			b = field(1, b)
		}
		return field(protowire.Number(transactionMessage), b)
	case 4: // larger than any update may be
		return field(protowire.Number(accountMessage), make([]byte, hugeBytes))
	case 5: // another type where a message should be
		return wire(nil).number(protowire.Number(slotMessage), 7)
	case 6: // a key of 31 bytes
		return field(protowire.Number(accountMessage), wire(nil).bytes(1, wire(nil).bytes(1, make([]byte, 31)).bytes(3, make([]byte, 32))).number(2, 9))
	case 7: // a block that is its own parent
		return field(protowire.Number(metaMessage), wire(nil).number(1, 5).bytes(2, []byte("11111111111111111111111111111111")).number(6, 5))
	}
	return bytes.Repeat([]byte{0xff, 0x07, 0x9c}, 40) // bytes of no meaning
}

// hugeBytes is how much the largest nonsense holds. A client under test takes less.
const hugeBytes = 5 << 20
