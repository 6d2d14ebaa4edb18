package main

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"testing"

	"ledgerd/cmd/ledgerd/internal/testnode"
	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/bubble"
	"ledgerd/engine/source/geyser"
)

// faultSeeds returns the seeds to run: one by LEDGERD_FAULT_SEED, or the first N by LEDGERD_FAULT_SCHEDULES or of a sample, which is smaller
// with -short. make crash runs 200, make live 2,000, and both those of regressionSeeds.
func faultSeeds(t *testing.T) (seeds []uint64) {
	t.Helper()
	if text, ok := os.LookupEnv("LEDGERD_FAULT_SEED"); ok {
		seed, err := strconv.ParseUint(text, 10, 64)
		must(t, err)
		return []uint64{seed}
	}
	const sampled = 8
	n := repetitions(t, "LEDGERD_FAULT_SCHEDULES", sampled)
	for seed := range uint64(n) {
		seeds = append(seeds, seed)
	}
	for _, seed := range regressionSeeds {
		if n > sampled && !slices.Contains(seeds, seed) {
			seeds = append(seeds, seed)
		}
	}
	return seeds
}

// regressionSeeds are seeds that once found a fault which few schedules find: a gap whose accounts nobody asked for; a
// status that was taken for the block of an earlier session; one that made a block final which the node had shown
// beside the right one; one that made such a block the root, final, or what a gap was filled from; a head that had the
// first block passed over, which nothing but its statuses told of.
var regressionSeeds = []uint64{25, 56, 222, 317, 753, 1081, 1893, 2589, 3173}

// F20, F21, F22, F25, F26, F27, F28, F29: TestFaultSchedules has each source follow a node through random faults, of the network, of the node and of the
// chain: what the engine holds in the end is what happened, without a gap on the way, and soon.
func TestFaultSchedules(t *testing.T) {
	t.Parallel()
	for _, seed := range faultSeeds(t) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			sources := [...]liveSource{
				streamAndCalls(geyser.Config{}), // token headers alone
				streamAndCalls(geyser.Config{WholeData: true}),
				streamAndCalls(geyser.Config{NoTransactions: true}),
				callsAlone,
			}
			inBubble(t, testnode.NewSchedule(seed, seed%4 == 3), sources[seed%4])
		})
	}
}

// F21, F26: TestAGapThatNobodyFillsIsNeverPassed cuts the stream for longer than the node replays, with nobody to ask: nothing
// after the gap is shown, the node says why, and it does not storm the other side.
func TestAGapThatNobodyFillsIsNeverPassed(t *testing.T) {
	t.Parallel()
	s := &testnode.Schedule{
		Parameters: "seed=5,accounts=120,tps=12,slot_time=0,slots=120", Config: testnode.Config{InMemory: true, ReplaySlots: 5},
		Faults: []testnode.Timed{{Slot: 30, Fault: testnode.Fault{Kind: testnode.Down, For: 20 * testnode.SlotTime}}},
	}
	bubble.Test(t, func(t *testing.T) {
		r := startLive(t, s, streamAlone(geyser.Config{}))
		defer r.stop()
		for slot := 0; r.node.Advance(1); slot++ {
			if slot == s.Faults[0].Slot {
				r.node.Inject(s.Faults[0].Fault)
			}
			if !r.sleep(testnode.SlotTime) {
				return
			}
		}
		if tip := r.tip(ledger.Processed); tip < 20 || tip > 32 {
			t.Errorf("slot %d is shown, the stream ended after slot 31", tip)
		}
		must(t, r.chain.is(r.ledger.Main()[:len(r.chain.blocks)]))
		if why := r.engine.Status().Unhealthy; why == "" {
			t.Error("health says nothing of the gap")
		}
		if asked := r.node.Tally(); asked.Subscriptions+asked.Refused > 30 {
			t.Errorf("the node was asked %+v in %v", asked, 120*testnode.SlotTime)
		}
	})
}
