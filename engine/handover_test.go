package engine

import (
	"errors"
	"testing"
	"time"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/bubble"
	"ledgerd/engine/sequencer"
)

// handSlots is a short ledger. That of handBase begins with base state in several records.
const (
	handSlots = "seed=5,accounts=500,slot_time=400ms,tps=20,fork_rate=0.25,skip_rate=0.1,finality=6,slots=40"
	handBase  = "seed=5,accounts=9000,slot_time=400ms,tps=20,fork_rate=0.25,skip_rate=0.1,finality=2,slots=5"
)

// TestHandOverAtAnyCommit has the writer deposed at each of its commits, in the middle of base state too, whether
// that commit got into the log or not. The other goes on to the same end.
func TestHandOverAtAnyCommit(t *testing.T) {
	inBase := 0
	for parameters, stride := range map[string]int{handSlots: sample(1, 8, 20), handBase: sample(1, 1, 2)} {
		var want straightRun
		bubble.Test(t, func(t *testing.T) { want = straight(t, parameters) })
		for at, more := 0, true; more; at += stride {
			for _, gotIn := range []bool{false, true} {
				bubble.Test(t, func(t *testing.T) {
					var duringBase bool
					more, duringBase = handOver(t, parameters, at, gotIn, &want)
					if duringBase {
						inBase++
					}
				})
				if t.Failed() {
					t.Fatalf("%s: deposed at commit %d, in the log: %v", parameters, at, gotIn)
				}
			}
		}
	}
	if inBase < sample(2, 2, 1) {
		t.Errorf("%d times in the middle of base state", inBase)
	}
}

// handOver has the first writer deposed at one of its commits, which got into the log or not. It reports whether there was
// such a commit, and whether it was one of base state with others before it.
func handOver(t *testing.T, parameters string, at int, gotIn bool, want *straightRun) (deposed, inBase bool) {
	l := newSharedLedger()
	l.info = simulator(t, parameters).Info()
	first := startMember(t, l, simulator(t, parameters), Config{Shards: 2})
	other := startMember(t, l, simulator(t, parameters), Config{Shards: 1})
	replica := startMember(t, l, simulator(t, parameters), Config{Shards: 3})
	count := 0
	l.before = func(m *member, commit []*ledger.Record) error {
		if count++; m != first.member || deposed || count <= at {
			return nil
		}
		if deposed = true; gotIn {
			l.appendLocked(commit)
		}
		inBase = len(l.commits) > 0 && commit[0].Kind == ledger.BaseRecord // the other begins with what there is
		l.grantLocked(other.member)
		return ledger.ErrDeposed
	}
	l.grant(first.member)
	pause(time.Minute)
	if err := first.subject.stop(); deposed != errors.Is(err, ledger.ErrDeposed) {
		t.Errorf("the first writer ended with %v", err)
	}
	if !deposed {
		l.grant(other.member)
		pause(time.Minute)
	}
	for name, n := range map[string]clusterNode{"the other": other, "the replica": replica} {
		if err := errors.Join(sameEnd(n.Head(), want.end), want.check(l, n.published)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	return deposed, inBase
}

// TestWriterKnowsWhetherTheSourceSpeaksOfFinality has a node take over from one whose source said what is
// confirmed and final, or never did. With the first nothing becomes final by depth.
func TestWriterKnowsWhetherTheSourceSpeaksOfFinality(t *testing.T) {
	const depth = sequencer.FinalityDepth
	root := rootBlock(100, lamports(key(1), 5))
	c := append([]*ledger.Block{root}, chainOf(root, depth+20)...)
	nothing := &ledger.SlotStatus{Slot: 9999, Status: ledger.StatusConfirmed} // which no record tells
	for name, tt := range map[string]struct {
		said  []ledger.Event    // after the first five blocks
		as    ledger.Commitment // as what all blocks come
		spoke bool
		final int // which block is final at the end
	}{
		"nothing":                    {nil, ledger.Processed, false, 20},
		"nothing, final by depth":    {events(c[5 : depth+5]...), ledger.Processed, false, 20},
		"confirmed":                  {[]ledger.Event{status(c[1], ledger.StatusConfirmed)}, ledger.Processed, true, 0},
		"final":                      {[]ledger.Event{status(c[2], ledger.StatusFinalized)}, ledger.Processed, true, 2},
		"dead":                       {[]ledger.Event{status(c[4], ledger.StatusDead), c[5]}, ledger.Processed, true, 0},
		"final, as deep as by depth": {append(append([]ledger.Event{nothing}, events(c[5:depth+4]...)...), status(c[3], ledger.StatusFinalized)), ledger.Processed, true, 3},
		"blocks are final":           {nil, ledger.Finalized, false, depth + 20},
	} {
		t.Run(name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				l := newSharedLedger()
				l.info = finite()
				for _, b := range c {
					b.Status = tt.as
				}
				first, second := writer(t, l, Config{Shards: 1}), standby(t, l, Config{Shards: 1})
				first.send(append(events(c[:5]...), tt.said...)...)
				second.mustLead()
				first.mustStop()
				for name, n := range map[string]clusterNode{"first": first, "second": second} {
					if n.config.Dir.Statuses() != tt.spoke {
						t.Errorf("the %s writer knows that it spoke: %v", name, !tt.spoke)
					}
				}
				second.send(events(c[5:]...)...)
				if tips := second.Head().Tips; tips[ledger.Finalized].Slot != c[tt.final].Slot {
					t.Errorf("slot %d is final at the end, want %d", tips[ledger.Finalized].Slot, c[tt.final].Slot)
				}
			})
		})
	}
}
