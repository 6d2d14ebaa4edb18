package main

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"testing"

	"ledgerd/cmd/ledgerd/internal/testnode"
	"ledgerd/engine"
	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/bubble"
	"ledgerd/engine/source/geyser"
	"ledgerd/engine/source/upstream"
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

// F21: TestABlockThatIsMissingIsNeverTakenForSkipped has a node deny a block of its chain for ever: a source that asks stops
// before it and says so, though later blocks could be had.
func TestABlockThatIsMissingIsNeverTakenForSkipped(t *testing.T) {
	t.Parallel()
	for how := range testnode.MissingWays {
		s := &testnode.Schedule{Parameters: "seed=5,accounts=120,tps=12,slot_time=0,slots=80", Config: testnode.Config{InMemory: true}}
		bubble.Test(t, func(t *testing.T) {
			r := startLive(t, s, callsAlone)
			defer r.stop()
			for slot := 0; r.node.Advance(1); slot++ {
				if slot == 30 {
					r.node.Inject(testnode.Fault{Kind: testnode.Missing, N: 1_000_000, How: how})
				}
				if !r.sleep(testnode.SlotTime) {
					return
				}
			}
			if tip := r.tip(ledger.Processed); tip < 20 || tip > 33 {
				t.Errorf("way %d: slot %d is shown, no block is to be had after slot 31", how, tip)
			}
			if why := r.engine.Status().Unhealthy; why == "" {
				t.Errorf("way %d: health says nothing of it", how)
			}
			r.node.Heal()
			for range 60 {
				if r.isDone() || !r.sleep(testnode.SlotTime) {
					break
				}
			}
			r.check()
		})
	}
}

// TestABlockThatIsWronglyCalledDeadIsShownAgain has a node call blocks of its chain dead and go on from them: what is
// confirmed in spite of it is held in the end, whoever shows it again.
func TestABlockThatIsWronglyCalledDeadIsShownAgain(t *testing.T) {
	t.Parallel()
	whole := geyser.Config{WholeData: true}
	for name, source := range map[string]liveSource{"stream": streamAlone(whole), "stream and calls": streamAndCalls(whole)} {
		for _, replays := range []bool{true, false} {
			if !replays && name == "stream" {
				continue // nobody has it
			}
			for way := 0; way < 4; way += sample(1, 3) { // the first and the last differ in both
				t.Run(fmt.Sprintf("%s, replays %v, way %d", name, replays, way), func(t *testing.T) {
					inBubble(t, &testnode.Schedule{
						Parameters: "seed=5,accounts=120,tps=12,slot_time=0,slots=120", Config: testnode.Config{InMemory: true, ReplaySlots: 60, NoReplay: !replays},
						Faults: []testnode.Timed{{Slot: 30, Fault: testnode.Fault{Kind: testnode.WrongDead, N: 1 + way/2, How: way % 2}}},
					}, source)
				})
			}
		}
	}
}

// TestWritesAfterTheirBlocksAreHeldInTheEnd has a node tell of writes when their blocks are sealed, on a ledger with
// forks: they come and go with their branch.
func TestWritesAfterTheirBlocksAreHeldInTheEnd(t *testing.T) {
	t.Parallel()
	for way := range sample(6, 2) {
		t.Run(fmt.Sprint("way ", way), func(t *testing.T) {
			s := &testnode.Schedule{
				Parameters: "seed=5,accounts=120,tps=12,slot_time=0,fork_rate=0.25,slots=120", Config: testnode.Config{InMemory: true, ReplaySlots: 60, Seed: uint64(way)},
			}
			for slot := 5; slot < 105; slot++ { // not the last, after which nothing comes
				s.Faults = append(s.Faults, testnode.Timed{Slot: slot, Fault: testnode.Fault{Kind: testnode.LateWrite, N: 6, How: way % 2}})
			}
			bubble.Test(t, func(t *testing.T) {
				var node *geyser.Source
				r := startLive(t, s, func(n *testnode.Node, c testnode.Config) engine.Source {
					node = geyser.New(streamConfig(geyser.Config{WholeData: true}, n, c))
					return node
				})
				defer r.stop()
				r.play()
				r.check()
				if n := node.Upstream().Errors[upstream.Garbage]; n < 10 {
					t.Errorf("%d writes came late, want more", n)
				}
			})
		})
	}
}
