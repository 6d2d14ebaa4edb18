package sim

import (
	"fmt"
	"testing"

	"ledgerd/engine/ledger/ledgertest"
)

// The pins hold on every machine, and a change of them is a change of every ledger that
// somebody keeps. They do not depend on the codec: the hash of the last block covers the chain
// of blocks, the state hashes every account.
func TestGoldenLedgerOfSeed1(t *testing.T) {
	events := run(t, "slots=200,slot_time=0", nil)
	all := books(events)
	end := all[len(all)-1]
	if end.block.Height.Value == uint64(len(all)-1) {
		t.Errorf("no branch in %d blocks: the pins guard less than they should", len(all)-1)
	}
	drawn := books(run(t, "slots=50,slot_time=0,zipf=1.2", nil)) // accounts by rank, for which the logarithms and powers are
	for what, pin := range map[string]struct{ got, want string }{
		"events":               {fmt.Sprint(len(events)), "528"},
		"state hash, genesis":  {all[0].stateHash().String(), "77f03f5a2c156256a523e948c66f77c6c2fb0f84256e949cc2c17d06c943c4c1"},
		"state hash, end":      {end.stateHash().String(), "ba026a5fea3915c18abd391963db2c15be583dbbfcd29e591456e7f49e993fc2"},
		"state hash, by rank":  {drawn[len(drawn)-1].stateHash().String(), "38c720b080468dc0046abe48ec13e76ad269c26cb0e3ec4ee1517bd83c6a1089"},
		"blockhash at the end": {end.block.Blockhash.String(), "GnDJFnfrMfTidFfs6bATkCSxKcBRuqtQ2tke9UrAd1NC"},
	} {
		ledgertest.Equal(t, pin.got, pin.want, "%s", what)
	}
}
