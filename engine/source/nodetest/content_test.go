package nodetest

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"testing"

	"go.uber.org/goleak"

	"ledgerd/engine/ledger/ledgertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const small = "seed=3,accounts=150,tps=20,slot_time=0,fork_rate=0.1,skip_rate=0.1,slots=40"

// TestTheSameSeedTellsTheSame holds what seeds tell: those that tests name because of what they find would find other things.
func TestTheSameSeedTellsTheSame(t *testing.T) {
	all := sha256.New()
	for seed := range uint64(50) {
		fmt.Fprintf(all, "%+v", *NewSchedule(seed, false))
	}
	l, err := Simulated(small, Plan{Turns: []Turn{{Before: 5, Kind: Fork, Depth: 2}, {Before: 9, Kind: DeadSlot, Depth: 1}}})
	ledgertest.Must(t, err)
	n := New(l, Config{Seed: 4})
	n.Advance(l.Slots)
	for _, m := range n.log {
		all.Write(m.update())
	}
	ledgertest.Equal(t, hex.EncodeToString(all.Sum(nil)[:4]), "9a19a9af", "the schedules of 50 seeds, and the messages of a node")
}
