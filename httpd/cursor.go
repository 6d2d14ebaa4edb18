package httpd

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

// list is the first byte of a cursor.
type list byte

const (
	tokenList   list = 't'
	programList list = 'p'
)

// cursorEncoding refuses bits that mean nothing, so that one cursor has one spelling.
var cursorEncoding = base64.RawURLEncoding.Strict()

// appendCursor appends the cursor that continues the list of owner after last.
func appendCursor(dst []byte, l list, owner, last *ledger.Pubkey) []byte {
	var raw [cursorBytes]byte
	raw[0] = byte(l)
	copy(raw[1:], owner[:])
	copy(raw[33:], last[:])
	return cursorEncoding.AppendEncode(dst, raw[:])
}

// parseCursor returns the key after which the list of owner goes on: unknown for no
// cursor. A cursor of another list is malformed here.
func parseCursor(s []byte, l list, owner *ledger.Pubkey) (after ledger.Opt[ledger.Pubkey], err error) {
	if s == nil {
		return after, nil
	}
	var raw [cursorBytes]byte
	// The exact length also keeps out the line ends that the decoder would pass over.
	if len(s) != cursorEncoding.EncodedLen(cursorBytes) {
		return after, errCursor
	}
	if n, err := cursorEncoding.Decode(raw[:], s); err != nil || n != cursorBytes {
		return after, errCursor
	}
	if list(raw[0]) != l || ledger.Pubkey(raw[1:33]) != *owner {
		return after, errCursor
	}
	return ledger.Some(ledger.Pubkey(raw[33:])), nil
}
