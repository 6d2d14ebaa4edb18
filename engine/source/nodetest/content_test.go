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

// TestTheSameSeedTellsTheSame holds what seeds tell: a seed that found something finds it again.
func TestTheSameSeedTellsTheSame(t *testing.T) {
	all := sha256.New()
	for seed := range uint64(50) {
		fmt.Fprintf(all, "%+v", *NewSchedule(seed, false))
	}
	l, err := Simulated(small, 0, Turn{Before: 5, Slots: 3, IsFork: true}, Turn{Before: 9, Slots: 2})
	ledgertest.Must(t, err)
	n := New(l, Config{Seed: 4})
	n.Advance(l.Slots)
	for _, m := range n.log {
		all.Write(m.update())
	}
	ledgertest.Equal(t, hex.EncodeToString(all.Sum(nil)[:4]), "17e3ade2", "the schedules of 50 seeds, and the messages of a node")
}
