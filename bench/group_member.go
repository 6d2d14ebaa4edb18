package bench

import (
	"encoding/json"
	"fmt"
	"time"

	"ledgerd/bench/wsclient"
	"ledgerd/engine/ledger"
)

// groupMember is one subscriber. What its reader touches is the reader's.
type groupMember struct {
	group   *group
	conn    *wsclient.Conn
	answers chan answer
	gone    chan struct{} // closed when it hears nothing more
	ended   error         // why, once gone is closed

	keys    map[string]namedKey // nil: everything
	slot    ledger.Slot         // of the newest frame
	frames  int                 // of that slot; who names accounts: since the last check
	sum     uint64              // of the keys of those
	checked ledger.Slot         // what the last check reached
	fault   error               // what was wrong first
}

// namedKey is an account that a subscriber named.
type namedKey struct {
	index int
	slot  ledger.Slot // of the last update
}

// answer is where a pong stands in the stream, and what was wrong before it.
type answer struct {
	slot  ledger.Slot
	fault error
}

func (m *groupMember) wait() error {
	<-m.gone
	return m.ended
}

func (m *groupMember) wrong(format string, args ...any) {
	if m.fault == nil {
		m.fault = fmt.Errorf(format, args...)
	}
}

// hear takes frames that arrived together.
func (m *groupMember) hear(batch []byte, _ int) {
	now := time.Now()
	timed := m.group.timed.Load()
	run := 0 // frames of m.slot in this batch
	flush := func() {
		if timed != nil && run > 0 {
			timed.record(now.Sub(m.group.ledger.Due(m.slot)), run)
		}
		run = 0
	}
	whole := m.group.ledger.Config().Updates
	wsclient.Each(batch, func(payload []byte) {
		// Of who wants everything, the keys alone tell whether a block is whole. Its slot is read
		// where it may begin: the readers must leave the server its processors.
		if m.keys == nil && run > 0 && m.frames < whole && wsclient.IsUpdate(payload) {
			run++
			m.frames++
			m.sum += keySum(wsclient.UpdateKey(payload))
			return
		}
		key, lamports, ok := wsclient.ParseUpdate(payload)
		if !ok {
			flush() // who hears the answer asks how long all before it took
			m.answer(payload)
			return
		}
		if slot := ledger.Slot(lamports); slot != m.slot {
			flush()
			m.enter(slot)
		}
		run++
		m.frames++
		if m.keys == nil {
			m.sum += keySum(key)
			return
		}
		named, ok := m.keys[string(key)]
		if config := m.group.ledger.Config(); !ok || named.slot == m.slot || !config.Has(m.slot, named.index) {
			m.wrong("account %s comes at slot %d, where it does not belong", key, m.slot)
		}
		m.keys[string(key)] = namedKey{named.index, m.slot}
	})
	flush()
}

// enter begins another slot. Who wants everything hears every slot, and all of it.
func (m *groupMember) enter(slot ledger.Slot) {
	if m.keys == nil {
		m.checkBlock()
		if slot != m.slot+1 {
			m.wrong("slot %d comes after slot %d", slot, m.slot)
		}
		m.frames, m.sum = 0, 0
	} else if slot < m.slot {
		m.wrong("slot %d comes after slot %d", slot, m.slot)
	}
	m.slot = slot
}

// checkBlock sees whether the newest slot was told whole, unless it was checked before.
func (m *groupMember) checkBlock() {
	if m.slot == m.checked {
		return
	}
	if want := m.group.ledger.Config().Updates; m.frames != want || m.sum != m.group.sum(m.slot) {
		m.wrong("slot %d came with %d of %d frames, or with others", m.slot, m.frames, want)
	}
	m.checked = m.slot
}

// answer takes a pong. What was told before it is all there is up to the slot it names.
func (m *groupMember) answer(payload []byte) {
	slot, err := pongSlot(payload)
	if err != nil || slot == 0 {
		m.wrong("instead of an update or a pong comes %.100q", payload)
		return
	}
	at := ledger.Slot(slot)
	if m.keys == nil {
		if m.checkBlock(); at != m.slot {
			m.wrong("the server is at slot %d, and told up to %d", at, m.slot)
		}
	} else {
		want := 0
		config := m.group.ledger.Config()
		for _, named := range m.keys {
			want += config.Of(named.index, m.checked+1, at)
		}
		if m.frames != want {
			m.wrong("%d frames came of the slots from %d to %d, not %d", m.frames, m.checked+1, at, want)
		}
		m.frames, m.checked = 0, at
	}
	select {
	case m.answers <- answer{at, m.fault}:
	default: // nobody has asked so often
	}
}

// pongSlot returns the slot that a pong names, 0 if the payload is something else.
func pongSlot(payload []byte) (uint64, error) {
	var pong struct {
		Type string
		Slot uint64
	}
	if err := json.Unmarshal(payload, &pong); err != nil || pong.Type != "pong" {
		return 0, err
	}
	return pong.Slot, nil
}
