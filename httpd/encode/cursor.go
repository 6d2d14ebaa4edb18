package encode

import (
	"encoding/base64"

	"ledgerd/engine/ledger"
)

// A cursor is the unpadded base64url of
//
//	list 1 | wallet or program 32 | last key shown 32
//
// so it says by itself which list it goes on with and where, on any replica and after any
// restart, and depends on no slot.
const cursorBytes = 1 + 32 + 32

// Kind is the kind of list that a cursor goes on with: its first byte.
type Kind byte

const (
	Tokens  Kind = 't'
	Members Kind = 'p'
)

// cursorEncoding refuses bits that mean nothing, so that one cursor has one spelling.
var cursorEncoding = base64.RawURLEncoding.Strict()

// AppendCursor appends the cursor that continues the list of owner after last.
func AppendCursor(dst []byte, k Kind, owner, last *ledger.Pubkey) []byte {
	var raw [cursorBytes]byte
	raw[0] = byte(k)
	copy(raw[1:], owner[:])
	copy(raw[33:], last[:])
	return cursorEncoding.AppendEncode(dst, raw[:])
}

// ParseCursor returns the key after which the list of owner goes on: unknown for no
// cursor. It is not ok if the cursor is malformed or of another list.
func ParseCursor(s []byte, k Kind, owner *ledger.Pubkey) (after ledger.Opt[ledger.Pubkey], ok bool) {
	if s == nil {
		return after, true
	}
	var raw [cursorBytes]byte
	// The exact length also keeps out the line ends that the decoder would pass over.
	if len(s) != cursorEncoding.EncodedLen(cursorBytes) {
		return after, false
	}
	if n, err := cursorEncoding.Decode(raw[:], s); err != nil || n != cursorBytes {
		return after, false
	}
	if Kind(raw[0]) != k || ledger.Pubkey(raw[1:33]) != *owner {
		return after, false
	}
	return ledger.Some(ledger.Pubkey(raw[33:])), true
}
