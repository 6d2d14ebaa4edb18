package yellowstone

import (
	"errors"

	"ledgerd/engine/ledger"
)

// Slice is a part of an account's data.
type Slice struct{ Offset, Length uint64 }

// Sizes of what the token programs keep in an account's data.
const (
	mintBytes     = 82
	holdingBytes  = 165 // a token account; with extensions the kind follows in one byte
	multisigBytes = 355 // of a multisig and of nothing else, extended or not
)

// DataSlices are the parts of an account's data that tell what ledgerd keeps of it: the header of
// a token account or a mint, and whether more follows.
//
// A server sends a slice only where the data reaches its end, and puts those that it sends one after
// the other. So one slice over the header would show nothing of a mint, which is shorter than a
// token account. These show the header and tell by the number of bytes how long the data is:
//
//	sent    the data has
//	   0    less than 82 bytes
//	  82    82: a mint
//	  83    83 to 164
//	 165    165: a token account
//	 166    166 to 354, cut after the kind
//	 167    355: a multisig
//	 168    more, cut after the kind
func DataSlices() []Slice {
	return []Slice{
		{0, mintBytes}, {mintBytes, 1}, {mintBytes + 1, holdingBytes - mintBytes - 1}, {holdingBytes, 1},
		{multisigBytes - 1, 1}, {multisigBytes, 1},
	}
}

// ErrNotSliced: data came that the slices asked for cannot give. The server does not support slices.
var ErrNotSliced = errors.New("the server does not send the slices of data that were asked for")

// teachSlices sets the token and mint facts of a write from the slices of its data. Whether a mint
// with extensions scales its amounts is not known then.
func teachSlices(w *ledger.AccountWrite, data []byte) error {
	const kindBytes = holdingBytes + 1
	switch len(data) {
	case 0, mintBytes, mintBytes + 1, holdingBytes:
		w.SetTokenFacts(data)
		return nil
	case kindBytes, kindBytes + 2:
		w.SetTokenFacts(data[:kindBytes])
		if w.Mint != nil {
			mint := *w.Mint
			mint.Scaled = ledger.Opt[bool]{}
			w.Mint = &mint
		}
		return nil
	case kindBytes + 1:
		w.SetTokenFacts(nil)
		return nil
	}
	return ErrNotSliced
}
