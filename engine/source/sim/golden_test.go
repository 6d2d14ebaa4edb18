package sim

import (
	"fmt"
	"math"
	"testing"
	"testing/synctest"

	"ledgerd/engine/ledger/datatest"
	"ledgerd/engine/ledger/ledgertest"
)

// The pins hold on every machine, and a change of them is a change of every ledger that
// somebody keeps. They do not depend on the codec: the hash of the last block covers the chain
// of blocks, the state hashes every account. An entry of testdata/goldens.txt is a specification, and how many events it has, the
// hash of its last block and that of its state there. In these ledgers nearly all that can happen does.
func TestGoldenLedgers(t *testing.T) {
	for _, lines := range datatest.Entries(t, "goldens.txt") {
		t.Run(lines[0], func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				events := run(t, lines[0], nil)
				all := books(events)
				last := all[len(all)-1]
				got := fmt.Sprintf("> %d %s %s", len(events), last.block.Blockhash, last.stateHash())
				ledgertest.Equal(t, got, lines[1], "events, hash and state hash")
			})
		})
	}
	genesis := books(run(t, "slots=1,slot_time=0", nil))[0]
	ledgertest.Equal(t, genesis.stateHash().String(), "77f03f5a2c156256a523e948c66f77c6c2fb0f84256e949cc2c17d06c943c4c1", "the state hash of genesis")
}

// However steep a table is its last rank is possible, and the largest one, of the smallest exponent, does not overflow: its sum is below the
// harmonic number of its size, about 18, times the largest weight.
func TestEveryRankHasAWeight(t *testing.T) {
	if z := newZipf(20, 100_000); z[19] <= z[18] || 18<<(unitBits-weightShift)+20*million > math.MaxInt64 {
		t.Errorf("the cumulative weights are %v", z)
	}
}
