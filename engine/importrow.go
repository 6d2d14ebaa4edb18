package engine

import (
	"encoding/binary"
	"fmt"

	"ledgerd/engine/codec"
	"ledgerd/engine/ledger"
)

// What an import keeps of an account record, after its key, slot and version:
//
//	lamports   number; 0 is a deletion
//	held       u8: 1 the filter admits it and account follows, 2 mint facts follow
//	[account]  as codec.AppendAccount, without provenance
//	[mint]     as codec.AppendMint
//
// One that the filter leaves out is kept so far: it takes the place of an older one that it admits.
const (
	importHolds = 1 << 0
	importMint  = 1 << 1
)

// importRow is one of them.
type importRow struct {
	lamports uint64
	account  *ledger.Account // nil: not held
	mint     *ledger.Mint    // nil: no mint
}

// appendImportRow appends a record that is whole, but where it closes the account.
func appendImportRow(dst []byte, w *ledger.AccountWrite, f *ledger.Filter) []byte {
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
		flags |= importHolds
	}
	if w.Mint != nil {
		flags |= importMint
	}
	dst = append(dst, flags)
	if flags&importHolds != 0 {
		dst = codec.AppendAccount(dst, &a)
	}
	if w.Mint != nil {
		dst = codec.AppendMint(dst, w.Mint)
	}
	return dst
}

// decodeImportRow is the inverse of appendImportRow; the account is good until the decoder's next.
func decodeImportRow(b []byte, d *codec.AccountDecoder) (r importRow, err error) {
	n := 0
	if r.lamports, n = binary.Uvarint(b); n <= 0 || n == len(b) {
		return r, errImportRow
	}
	flags, b := b[n], b[n+1:]
	if flags&importHolds != 0 {
		if r.account, b, err = d.Decode(b); err != nil {
			return r, errImportRow
		}
	}
	if flags&importMint != 0 {
		m, rest, err := codec.DecodeMint(b)
		if err != nil {
			return r, errImportRow
		}
		r.mint, b = &m, rest
	}
	if len(b) > 0 {
		return r, errImportRow
	}
	return r, nil
}

var errImportRow = fmt.Errorf("what was gathered cannot be read back: %w", ledger.ErrCorrupt)
