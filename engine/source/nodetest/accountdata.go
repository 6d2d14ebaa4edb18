package nodetest

import (
	"encoding/binary"

	"ledgerd/engine/importer/agave/agavetest"
	"ledgerd/engine/ledger"
)

const voteAccountBytes = 3762

// accountData returns the data of an account, in the layouts of the programs that own it.
func accountData(w *ledger.AccountWrite) []byte {
	switch {
	case w.Lamports == 0:
		return nil
	case w.Token != nil && w.Owner == ledger.Token2022Program:
		// Its kind, and that its owner never changes: an extension without a value.
		return append(agavetest.TokenData(w.Token), 2, 7, 0, 0, 0)
	case w.Token != nil:
		return agavetest.TokenData(w.Token)
	case w.Mint != nil:
		return agavetest.MintData(w.Mint)
	case w.Owner == ledger.VoteProgram:
		data := make([]byte, voteAccountBytes)
		binary.LittleEndian.PutUint32(data, 2) // the version of its state
		return data
	}
	return nil
}
