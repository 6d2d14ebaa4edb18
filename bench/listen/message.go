package listen

import "bytes"

var updateStart = []byte(`{"type":"account_update","pubkey":"`)

// isUpdate reports whether a payload is an account update.
func isUpdate(payload []byte) bool { return bytes.HasPrefix(payload, updateStart) }

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

// message is a frame that is no update, as far as it is read.
type message struct {
	Type      string
	Slot, Seq uint64
	FromSeq   uint64 `json:"from_seq"`
	ToSeq     uint64 `json:"to_seq"`
	NewestSeq uint64 `json:"newest_seq"`
}
