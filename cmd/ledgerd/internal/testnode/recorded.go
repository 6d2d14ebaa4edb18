package testnode

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"

	"ledgerd/engine/ledger"
)

// RecordedStream returns the ledger of a recorded validator stream: messages, each after its length in 4
// bytes, big endian. The node sends them as they were recorded; one step is what came until a newer slot began.
func RecordedStream(r io.Reader) (*Ledger, error) {
	l := &Ledger{}
	for {
		var length [4]byte
		if _, err := io.ReadFull(r, length[:]); err == io.EOF {
			break
		} else if err != nil {
			return nil, err
		}
		raw := make([]byte, binary.BigEndian.Uint32(length[:]))
		if _, err := io.ReadFull(r, raw); err != nil {
			return nil, err
		}
		m, err := readRecorded(raw)
		if err != nil {
			return nil, err
		}
		if n := len(l.steps); n == 0 || m.slot > l.steps[n-1].slot {
			l.steps = append(l.steps, step{slot: m.slot, told: []*message{}})
		}
		last := &l.steps[len(l.steps)-1]
		last.told = append(last.told, m)
		if m.kind == metaMessage {
			l.main = append(l.main, &block{Block: m.block})
		}
	}
	slices.SortFunc(l.main, func(x, y *block) int { return cmp.Compare(x.Slot, y.Slot) })
	l.Slots = len(l.steps)
	l.index()
	return l, nil
}

// readRecorded finds out what a recorded update is about.
func readRecorded(raw []byte) (*message, error) {
	m := &message{kind: pingMessage, recorded: raw}
	var part []byte
	err := fields(raw, func(n protowire.Number, _ uint64, b []byte) error {
		if n >= 2 && n <= 10 {
			m.kind, part = messageKind(n), b
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	slotField := protowire.Number(1)
	if m.kind == accountMessage || m.kind == transactionMessage {
		slotField = 2
	}
	block := &ledger.Block{}
	err = fields(part, func(n protowire.Number, v uint64, b []byte) error {
		switch {
		case n == slotField:
			m.slot = ledger.Slot(v)
		case m.kind == slotMessage && n == 3:
			m.status = slotStatus(v)
		case m.kind == metaMessage:
			return readRecordedMeta(block, n, v, b)
		}
		return nil
	})
	if m.kind == metaMessage {
		block.Slot, m.block = m.slot, block
	}
	return m, err
}

// readRecordedMeta reads a field of block meta.
func readRecordedMeta(block *ledger.Block, n protowire.Number, v uint64, b []byte) (err error) {
	inner := func() (v uint64) {
		err = fields(b, func(_ protowire.Number, w uint64, _ []byte) error {
			v = w
			return nil
		})
		return v
	}
	switch n {
	case 2:
		block.Blockhash, err = ledger.ParseHash(b)
	case 4:
		block.Time = ledger.Some(int64(inner()))
	case 5:
		block.Height = ledger.Some(inner())
	case 6:
		block.ParentSlot = ledger.Slot(v)
	case 7:
		block.PreviousBlockhash.Known = true
		block.PreviousBlockhash.Value, err = ledger.ParseHash(b)
	case 8:
		block.TransactionCount = v
	}
	return err
}

// RecordedBlock is an answer to getBlock as a node gave it, and its slot, which it does not name.
type RecordedBlock struct {
	Slot   ledger.Slot
	Answer json.RawMessage
}

// RecordedBlocks returns a ledger of blocks of which the answers to getBlock were recorded. They are answered as
// they are, whatever encoding is asked for. The accounts stand all the time as base says; it may be nil.
func RecordedBlocks(blocks []RecordedBlock, base *ledger.BaseState) (*Ledger, error) {
	t := builder{ledger: &Ledger{Base: base}, plan: Plan{Finality: confirmLag}}
	for _, r := range blocks {
		var head struct {
			Blockhash, PreviousBlockhash ledger.Hash
			ParentSlot                   ledger.Slot
		}
		if err := json.Unmarshal(r.Answer, &head); err != nil {
			return nil, fmt.Errorf("slot %d: %w", r.Slot, err)
		}
		b := &block{recorded: r.Answer, Block: &ledger.Block{
			Slot: r.Slot, ParentSlot: head.ParentSlot, Blockhash: head.Blockhash,
			PreviousBlockhash: ledger.Some(head.PreviousBlockhash),
		}}
		t.ledger.main = append(t.ledger.main, b)
		t.advanceTo(b.Slot)
		t.add(event{produced, b})
	}
	if len(blocks) == 0 {
		return nil, errors.New("there are no blocks")
	}
	t.settle()
	t.ledger.Slots = len(t.ledger.steps)
	t.ledger.index()
	return t.ledger, nil
}

// ToldStatuses returns what a recorded stream says that slots came to, in order.
func (l *Ledger) ToldStatuses() (statuses []ledger.SlotStatus) {
	names := map[slotStatus]ledger.Status{slotConfirmed: ledger.StatusConfirmed, slotFinalized: ledger.StatusFinalized, slotDead: ledger.StatusDead}
	for _, s := range l.steps {
		for _, m := range s.told {
			if status := names[m.status]; m.kind == slotMessage && status != 0 {
				statuses = append(statuses, ledger.SlotStatus{Slot: m.slot, Status: status})
			}
		}
	}
	return statuses
}
