package wsclient

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
)

// message is any frame of the server, as far as a state needs it. Texts point into the frame.
type message struct {
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

// IsUpdate reports whether a payload is an account update.
func IsUpdate(payload []byte) bool {
	return len(payload) > len(updateStart) && string(payload[:len(updateStart)]) == updateStart
}

// parseMessage reads a frame. Updates, which are nearly all of them, must have exactly the
// fields of the contract in their order.
func parseMessage(payload []byte) (m message, err error) {
	if !IsUpdate(payload) {
		return parseOther(payload)
	}
	m.kind = "account_update"
	t := text{rest: payload[len(updateStart):]}
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

// text is read from front to back. After a failure nothing is left.
type text struct {
	rest   []byte
	failed bool
}

// until returns what stands before a mark, and goes on behind the mark.
func (t *text) until(mark string) []byte {
	before, after, found := bytes.Cut(t.rest, []byte(mark))
	if !found {
		t.rest, t.failed = nil, true
		return nil
	}
	t.rest = after
	return before
}

func (t *text) number(mark string) uint64 {
	v, err := strconv.ParseUint(string(t.until(mark)), 10, 64)
	t.failed = t.failed || err != nil
	return v
}

// parseOther reads what is no update.
func parseOther(payload []byte) (m message, err error) {
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
	return message{
		kind: fields.Type, slot: fields.Slot, seq: fields.Seq, fromSeq: fields.FromSeq, toSeq: fields.ToSeq,
		newestSeq: fields.NewestSeq, fromSlot: fields.FromSlot, toSlot: fields.ToSlot,
	}, nil
}

// UpdateKey returns what begins with the pubkey in base58 of an account update, which the
// payload must be.
func UpdateKey(payload []byte) []byte { return payload[len(updateStart):] }

// ParseUpdate returns pubkey and lamports of an account update, literal or extended, without
// looking at the rest of it; false if the payload is something else.
func ParseUpdate(payload []byte) (pubkey []byte, lamports uint64, ok bool) {
	const mark = `","lamports":`
	const shortest, longest = 32, 44 // a pubkey in base58
	if !IsUpdate(payload) {
		return nil, 0, false
	}
	rest := payload[len(updateStart):]
	at := bytes.IndexByte(rest[:min(len(rest), longest+1)], '"')
	if at < shortest || len(rest) < at+len(mark) || string(rest[at:at+len(mark)]) != mark {
		return nil, 0, false
	}
	digits := rest[at+len(mark):]
	for i, d := range digits {
		if d < '0' || d > '9' {
			return rest[:at], lamports, i > 0
		}
		lamports = lamports*10 + uint64(d-'0')
	}
	return nil, 0, false
}
