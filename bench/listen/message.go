package listen

import (
	"bytes"
	"encoding/json"
)

const updateStart = `{"type":"account_update","pubkey":"`

// isUpdate reports whether a payload is an account update.
func isUpdate(payload []byte) bool {
	return len(payload) > len(updateStart) && string(payload[:len(updateStart)]) == updateStart
}

// numberAfter returns the number that follows a mark in a payload, 0 if there is none.
func numberAfter(payload []byte, mark string) (n uint64) {
	_, rest, _ := bytes.Cut(payload, []byte(mark))
	for _, d := range rest {
		if d < '0' || d > '9' {
			break
		}
		n = n*10 + uint64(d-'0')
	}
	return n
}

// blockTime returns the text of an update's timestamp, "" if it is null.
func blockTime(payload []byte) string {
	_, rest, _ := bytes.Cut(payload, []byte(`"timestamp":"`))
	text, _, _ := bytes.Cut(rest, []byte(`"`))
	return string(text)
}

// message is a frame that is no update, as far as it is read.
type message struct {
	Type      string
	Slot, Seq uint64
	FromSeq   uint64 `json:"from_seq"`
	NewestSeq uint64 `json:"newest_seq"`
}

// parseMessage reads a frame that is no update. What is not JSON is a message without a type.
func parseMessage(payload []byte) (m message) {
	_ = json.Unmarshal(payload, &m)
	return m
}
