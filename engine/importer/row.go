package importer

import (
	"encoding/binary"
	"fmt"

	"ledgerd/engine/codec"
	"ledgerd/engine/ledger"
)

// The value of a row that an import sorts; key, slot and version are fields of extsort.Row:
//
//	lamports   number; 0 is a deletion
//	held       u8: 1 the filter admits it and account follows, 2 mint facts follow
//	[account]  as codec.AppendAccount, without where its fields come from
//	[mint]     as codec.AppendMint
//
// A record that the filter does not admit has no account, but it still replaces older records of its account.
const (
	rowHolds = 1 << 0
	rowMint  = 1 << 1
)

// row is a decoded value.
type row struct {
	lamports uint64
	account  *ledger.Account // nil: the filter does not admit it
	mint     *ledger.Mint    // nil: not a mint
}

// appendRow appends the value for an account record, which has all fields or closes the account.
func appendRow(dst []byte, w *ledger.AccountWrite, f *ledger.Filter) []byte {
	dst = binary.AppendUvarint(dst, uint64(w.Lamports))
	if w.Lamports == 0 {
		return append(dst, 0)
	}
	a := ledger.Account{
		Pubkey: w.Pubkey, Owner: w.Owner, Lamports: w.Lamports, RentEpoch: w.RentEpoch,
		Executable: w.Executable, Known: w.Known &^ ledger.FieldMint, Token: w.Token,
	}
	flags := byte(0)
	if f.Admits(&a) {
		flags |= rowHolds
	}
	if w.Mint != nil {
		flags |= rowMint
	}
	dst = append(dst, flags)
	if flags&rowHolds != 0 {
		dst = codec.AppendAccount(dst, &a)
	}
	if w.Mint != nil {
		dst = codec.AppendMint(dst, w.Mint)
	}
	return dst
}

// decodeRow is the inverse of appendRow. The next call with the same decoder may overwrite the account.
func decodeRow(b []byte, d *codec.AccountDecoder) (r row, err error) {
	n := 0
	if r.lamports, n = binary.Uvarint(b); n <= 0 || n == len(b) {
		return r, errRow
	}
	flags, b := b[n], b[n+1:]
	if flags&rowHolds != 0 {
		if r.account, b, err = d.Decode(b); err != nil {
			return r, errRow
		}
	}
	if flags&rowMint != 0 {
		m, rest, err := codec.DecodeMint(b)
		if err != nil {
			return r, errRow
		}
		r.mint, b = &m, rest
	}
	if len(b) > 0 {
		return r, errRow
	}
	return r, nil
}

var errRow = fmt.Errorf("what was gathered cannot be read back: %w", ledger.ErrCorrupt)
