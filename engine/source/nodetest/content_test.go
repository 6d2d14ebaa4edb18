package nodetest

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"reflect"
	"testing"
	"time"

	"go.uber.org/goleak"

	"ledgerd/engine/ledger/ledgertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const small = "seed=3,accounts=150,tps=20,slot_time=0,fork_rate=0.1,skip_rate=0.1,slots=40"

// TestTheSameSeedTellsTheSame: a node's messages come from its seed alone.
func TestTheSameSeedTellsTheSame(t *testing.T) {
	l, err := Simulated(small, Plan{Turns: []Turn{{Before: 5, Kind: Fork, Depth: 2}, {Before: 9, Kind: DeadSlot, Depth: 1}}})
	ledgertest.Must(t, err)
	tell := func(seed uint64) (out [][]byte) {
		n := New(l, Config{Seed: seed})
		n.Advance(l.Slots)
		for _, m := range n.log {
			out = append(out, m.encode("x", nil, time.Unix(1, 2)))
		}
		return out
	}
	if !reflect.DeepEqual(tell(4), tell(4)) {
		t.Error("two nodes of a seed differ")
	}
	if reflect.DeepEqual(tell(4), tell(5)) {
		t.Error("nodes of two seeds do not differ")
	}
	// The seeds that tests name because of what they find would find other things.
	all := sha256.New()
	for seed := range uint64(50) {
		fmt.Fprintln(all, NewSchedule(seed, false))
	}
	ledgertest.Equal(t, hex.EncodeToString(all.Sum(nil)[:4]), "23d0cb82", "the schedules of 50 seeds")
}
