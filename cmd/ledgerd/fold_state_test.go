package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
)

// foldUpdate is the last that was told of an account.
type foldUpdate struct {
	Lamports   uint64
	Timestamp  string // as it stood in the frame, with its quotes, or null
	Slot, Seq  uint64 // 0 unless extended
	Owner      string
	Executable bool
}

// foldState is what the frames of one subscription add up to. It outlives a connection: what comes
// after a resume goes into the same state. It is not safe for concurrent use.
//
// Only extended frames carry a seq. Literal ones are folded, but not watched.
type foldState struct {
	// Whole says that every account is subscribed at the processed level, where numbers come
	// without holes. It is set before the first frame.
	Whole bool

	Accounts map[string]foldUpdate // by pubkey, in base58; closed ones have 0 lamports
	Seq      uint64                // the newest seq of any frame
	Slot     uint64                // the slot of the newest frame that named one

	Frames, Updates  int
	Rollbacks, Gaps  int // frames of that kind
	Resumed, Resyncs int // answers of that kind
	SlotEnds         int
	Ended            uint64 // the newest slot of which the end was told

	// Missing counts the numbers that were passed over. After a gap frame those of its range do
	// not count.
	Missing uint64
	// Repeated counts updates whose number had been told before. The restores after a rollback
	// and the members of a snapshot may share the number of the frame before.
	Repeated int

	conflatedTo uint64 // up to here only the newest states come
	snapshot    bool   // between subscribed and snapshot_end
	restoring   bool   // since a rollback, until the next number
}

// Apply folds a frame in. The answers to what a client says are counted, and else change
// nothing. It returns an error for what is no frame of the contract.
func (s *foldState) Apply(payload []byte) error {
	m, err := parseFoldMessage(payload)
	if err != nil {
		return err
	}
	s.Frames++
	switch m.kind {
	case "account_update":
		s.update(&m)
		return nil
	case "rollback":
		s.Rollbacks++
		s.restoring = true
		s.reach(m.seq)
		s.Slot = m.toSlot
		return nil
	case "gap":
		s.Gaps++
		if s.Whole && s.Seq != 0 && m.fromSeq > s.Seq {
			s.Missing += m.fromSeq - s.Seq
		}
		s.Seq = max(s.Seq, m.fromSeq)
		s.conflatedTo = m.toSeq
		return nil
	case "resumed":
		s.Resumed++
		s.restoring = true // frames of the very seq come again
		s.reach(m.fromSeq)
		return nil
	case "resync_required":
		s.Resyncs++
		s.Seq = max(s.Seq, m.newestSeq)
		return nil
	case "subscribed":
		s.snapshot = true
		return nil
	case "snapshot_end":
		s.snapshot = false
		return nil
	case "slot_end":
		s.SlotEnds++
		s.reach(m.seq)
		s.Slot = m.slot
		s.Ended = max(s.Ended, m.slot)
	case "heartbeat":
		s.reach(m.seq)
	}
	return nil
}

// reach notes that everything up to a seq has been told, if anything comes up to it.
func (s *foldState) reach(seq uint64) {
	if seq <= s.Seq {
		return
	}
	if s.Whole && s.Seq != 0 && seq > s.conflatedTo {
		s.Missing += seq - max(s.Seq, s.conflatedTo)
	}
	s.Seq = seq
}

func (s *foldState) update(m *foldMessage) {
	s.Updates++
	if m.extended {
		s.number(m.seq)
		s.Slot = m.slot
	}
	if s.Accounts == nil {
		s.Accounts = make(map[string]foldUpdate)
	}
	u := s.Accounts[string(m.pubkey)]
	u.Lamports, u.Slot, u.Seq, u.Executable = m.lamports, m.slot, m.seq, m.executable
	if u.Timestamp != string(m.time) {
		u.Timestamp = string(m.time)
	}
	if u.Owner != string(m.owner) {
		u.Owner = string(m.owner)
	}
	s.Accounts[string(m.pubkey)] = u
}

// number notes the number of an update.
func (s *foldState) number(seq uint64) {
	switch {
	case seq > s.Seq:
		s.reach(seq - 1)
		s.Seq, s.restoring = seq, false
	case s.snapshot, seq == s.Seq && s.restoring:
	default:
		s.Repeated++
	}
}

// foldMessage is any frame of the server, as far as a state needs it. Texts point into the frame.
type foldMessage struct {
	kind     string
	pubkey   []byte
	lamports uint64
	time     []byte // with its quotes, or null
	extended bool   // slot and seq are there

	slot, seq        uint64
	owner            []byte
	executable       bool
	fromSeq, toSeq   uint64
	newestSeq        uint64
	fromSlot, toSlot uint64
}

const updateStart = `{"type":"account_update","pubkey":"`

// parseFoldMessage reads a frame. Updates, which are nearly all of them, must have exactly the
// fields of the contract in their order.
func parseFoldMessage(payload []byte) (m foldMessage, err error) {
	if !bytes.HasPrefix(payload, []byte(updateStart)) {
		return parseFoldOther(payload)
	}
	m.kind = "account_update"
	t := foldText{rest: payload[len(updateStart):]}
	m.pubkey = t.until(`","lamports":`)
	m.lamports = t.number(`,"timestamp":`)
	if last := bytes.IndexByte(t.rest, ','); last < 0 {
		m.time = t.until("}")
	} else {
		m.extended = true
		m.time = t.until(`,"slot":`)
		m.slot = t.number(`,"seq":`)
		m.seq = t.number(`,"owner":"`)
		m.owner = t.until(`","executable":`)
		executable := t.until(`,"commitment":"`)
		m.executable = string(executable) == "true"
		t.failed = t.failed || !m.executable && string(executable) != "false"
		t.until(`"}`)
	}
	if t.failed || len(t.rest) > 0 {
		return m, fmt.Errorf("not an account update: %.300q", payload)
	}
	return m, nil
}

// foldText is read from front to back. After a failure nothing is left.
type foldText struct {
	rest   []byte
	failed bool
}

// until returns what stands before a mark, and goes on behind the mark.
func (t *foldText) until(mark string) []byte {
	before, after, found := bytes.Cut(t.rest, []byte(mark))
	if !found {
		t.rest, t.failed = nil, true
		return nil
	}
	t.rest = after
	return before
}

func (t *foldText) number(mark string) uint64 {
	v, err := strconv.ParseUint(string(t.until(mark)), 10, 64)
	t.failed = t.failed || err != nil
	return v
}

// parseFoldOther reads what is no update.
func parseFoldOther(payload []byte) (m foldMessage, err error) {
	var fields struct {
		Type      string
		Slot      uint64
		Seq       uint64
		FromSeq   uint64 `json:"from_seq"`
		ToSeq     uint64 `json:"to_seq"`
		NewestSeq uint64 `json:"newest_seq"`
		FromSlot  uint64 `json:"from_slot"`
		ToSlot    uint64 `json:"to_slot"`
	}
	if err := json.Unmarshal(payload, &fields); err != nil {
		return m, fmt.Errorf("not a frame of ledgerd's: %.300q: %w", payload, err)
	}
	return foldMessage{
		kind: fields.Type, slot: fields.Slot, seq: fields.Seq, fromSeq: fields.FromSeq, toSeq: fields.ToSeq,
		newestSeq: fields.NewestSeq, fromSlot: fields.FromSlot, toSlot: fields.ToSlot,
	}, nil
}
