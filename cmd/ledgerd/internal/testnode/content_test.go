package testnode

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"reflect"
	"testing"
	"time"

	"go.uber.org/goleak"

	"ledgerd/engine/ledger"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const small = "seed=3,accounts=150,tps=20,slot_time=0,fork_rate=0.1,skip_rate=0.1,slots=40"

func simulated(t testing.TB, parameters string, plan Plan) *Ledger {
	t.Helper()
	l, err := Simulated(parameters, plan)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestForksAreAsDeepAsPlanned(t *testing.T) {
	for depth := 1; depth <= maxForkDepth; depth++ {
		l := simulated(t, "accounts=120,tps=5,slot_time=0,fork_rate=0,slots=20", Plan{Turns: []Turn{{Before: 12, Kind: Fork, Depth: depth}}})
		main := l.Main()
		from, to := main[11], main[12]
		if to.ParentSlot != from.Slot || to.PreviousBlockhash.Value != from.Blockhash {
			t.Fatalf("depth %d: block %d builds on %d, want %d", depth, to.Slot, to.ParentSlot, from.Slot)
		}
		built, on := 0, from.Blockhash
		for _, s := range l.steps {
			for _, e := range s.events {
				if b := e.block; e.what == produced && b.PreviousBlockhash.Value == on && b.Slot < to.Slot {
					built, on = built+1, b.Blockhash
				}
			}
		}
		if built != depth {
			t.Errorf("depth %d: the branch has %d blocks", depth, built)
		}
	}
}

// TestTheSameSeedTellsTheSame: a node's messages come from its seed alone.
func TestTheSameSeedTellsTheSame(t *testing.T) {
	l := simulated(t, small, Plan{Turns: []Turn{{Before: 5, Kind: Fork, Depth: 2}, {Before: 9, Kind: DeadSlot}}})
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
	if got := hex.EncodeToString(all.Sum(nil)[:4]); got != "23d0cb82" {
		t.Errorf("the schedules of 50 seeds are others than they were: %s", got)
	}
}

// TestMessagesComeAsValidatorsSendThem: no account write comes after its bank froze, no status before its block,
// and nothing of a dead block after its end.
func TestMessagesComeAsValidatorsSendThem(t *testing.T) {
	l := simulated(t, small, Plan{Turns: []Turn{{Before: 5, Kind: DeadSlot}, {Before: 9, Kind: DeadBlock}, {Before: 14, Kind: Twice}}})
	early, lateTx := 0, 0
	for seed := range uint64(20) {
		n := New(l, Config{Seed: seed})
		n.Advance(l.Slots)
		state := map[ledger.Slot]slotStatus{}
		dead := map[ledger.Slot]int{}
		for _, m := range n.log {
			was, begun := state[m.slot]
			switch {
			case m.kind == accountMessage && (!begun || was == slotProcessed || was == slotDead):
				t.Fatalf("seed %d: slot %d is %d as an account of it comes", seed, m.slot, was)
			case m.kind == slotMessage:
				if (m.status == slotConfirmed || m.status == slotFinalized) && was != slotProcessed && was != slotConfirmed {
					t.Fatalf("seed %d: slot %d is %d as it becomes %d", seed, m.slot, was, m.status)
				}
				if m.status == slotDead {
					dead[m.slot]++
				}
				state[m.slot] = m.status
			case was == slotDead:
				t.Fatalf("seed %d: slot %d is dead as more of it comes", seed, m.slot)
			case m.kind == metaMessage && was != slotProcessed:
				early++
			case m.kind == transactionMessage && was == slotProcessed:
				lateTx++
			}
		}
		if len(dead) != 3 {
			t.Errorf("seed %d: dead slots %v", seed, dead)
		}
	}
	if early == 0 || lateTx == 0 {
		t.Errorf("the order does not vary: %d heads before the end, %d transactions after", early, lateTx)
	}
}
