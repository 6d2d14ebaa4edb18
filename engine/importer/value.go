package importer

import (
	"ledgerd/engine/codec"
	"ledgerd/engine/ledger"
)

// appendValue appends the value of the row for an account record, which has all fields or closes the account. It is
// empty for a closed account. Else it is the account without its provenance, as codec.AppendAccount encodes it, and
// after that the facts of a mint, as codec.AppendMint encodes them. An account that the filter does not admit has no
// key and no fields but its lamports; its row still replaces older records of the account.
func appendValue(dst []byte, w *ledger.AccountWrite, f *ledger.Filter, held *ledger.DataPrograms) []byte {
	if w.Lamports == 0 {
		return dst
	}
	a := ledger.Account{
		Pubkey: w.Pubkey, Owner: w.Owner, Lamports: w.Lamports, RentEpoch: w.RentEpoch,
		Executable: w.Executable, Known: w.Known &^ ledger.FieldMint, Token: w.Token, Data: w.Data,
	}
	if !f.Admits(&a) {
		a = ledger.Account{Lamports: w.Lamports}
	}
	if !held.Keep(&a.Owner) {
		a.Known, a.Data = a.Known&^ledger.FieldData, ledger.Data{}
	}
	dst = codec.AppendAccount(dst, &a)
	if w.Mint != nil {
		dst = codec.AppendMint(dst, w.Mint)
	}
	return dst
}
