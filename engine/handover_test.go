package engine

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"ledgerd/engine/datadir"
	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/bubble"
	"ledgerd/engine/sequencer"
	"ledgerd/engine/source/sim"
	"ledgerd/snapshot/vfs/vfstest"
)

// handSlots is a short ledger. That of handBase begins with base state in several records.
const (
	handSlots = "seed=5,accounts=500,slot_time=400ms,tps=20,fork_rate=0.25,skip_rate=0.1,finality=6,slots=40"
	handBase  = "seed=5,accounts=9000,slot_time=400ms,tps=20,fork_rate=0.25,skip_rate=0.1,finality=2,slots=5"
)

// simMember starts a member that may write the ledger of the simulator.
func simMember(t *testing.T, l *sharedLedger, parameters string, c Config) clusterNode {
	t.Helper()
	source, err := sim.Open(parameters)
	if err != nil {
		t.Fatal(err)
	}
	c = onDisk(t, vfstest.NewMemory(), c)
	if err := c.Dir.BindCluster("the ledger", datadir.FactsOf(source.Info(), nil, false)); err != nil {
		t.Fatal(err)
	}
	return startMemberOf(t, l, source, c)
}

// TestHandOverAtAnyCommit has the writer deposed at each of its commits, in the middle of base state too, whether
// that commit got into the log or not. The other goes on to the same end.
func TestHandOverAtAnyCommit(t *testing.T) {
	stride := 4
	if testing.Short() {
		stride = 16 // the race detector takes ten times as long
	}
	inBase := 0
	for ledgerOf, stride := range map[string]int{handSlots: stride, handBase: 1} {
		var points map[standing]bool
		var want *ledger.Head
		bubble.Test(t, func(t *testing.T) { points, want = straight(t, ledgerOf) })
		for n, more := 0, true; more; n += stride {
			for _, gotIn := range []bool{false, true} {
				bubble.Test(t, func(t *testing.T) {
					h := handOver{t: t, ledger: ledgerOf, at: n, gotIn: gotIn}
					h.run(points, want)
					inBase, more = inBase+h.inBase, h.done
				})
				if t.Failed() {
					t.Fatalf("%s: deposed at commit %d, in the log: %v", ledgerOf, n, gotIn)
				}
			}
		}
	}
	if inBase < 2 {
		t.Errorf("%d times in the middle of base state", inBase)
	}
}

type handOver struct {
	t      *testing.T
	ledger string
	at     int
	gotIn  bool
	done   bool
	count  int // commits of the first writer
	inBase int
}

func (h *handOver) run(points map[standing]bool, want *ledger.Head) {
	l := newSharedLedger()
	first := simMember(h.t, l, h.ledger, Config{Shards: 2})
	other := simMember(h.t, l, h.ledger, Config{Shards: 1})
	replica := simMember(h.t, l, h.ledger, Config{Shards: 3})
	l.before = func(m *member, commit []*ledger.Record) error {
		if m != first.member || h.done {
			return nil
		}
		if h.count++; h.count <= h.at {
			return nil
		}
		if h.done = true; h.gotIn {
			l.appendLocked(commit)
		}
		if len(l.commits) > 0 && commit[0].Kind == ledger.BaseRecord {
			h.inBase = 1 // the other begins with what there is
		}
		l.grantLocked(other.member)
		return ledger.ErrDeposed
	}
	l.grant(first.member)
	time.Sleep(time.Minute)
	synctest.Wait()
	if err := first.subject.stop(); h.done != errors.Is(err, ledger.ErrDeposed) {
		h.t.Errorf("the first writer ended with %v", err)
	}
	if !h.done {
		l.grant(other.member)
		time.Sleep(time.Minute)
	}
	for name, n := range map[string]clusterNode{"the other": other, "the replica": replica} {
		synctest.Wait()
		if n.hasEnded() {
			h.t.Fatalf("%s ended: %v", name, n.err)
		}
		if err := sameEnd(n.Head(), want); err != nil {
			h.t.Errorf("%s: %v", name, err)
		}
		checkHeads(h.t, l, n.published)
		for _, p := range n.published {
			if tip := p.Head.Tips[0]; p.Head.HasBlock && !points[standing{tip.Slot, tip.Hash, tip.Seq, p.Head.StateHash}] {
				h.t.Errorf("%s shows slot %d, seq %d, which the ledger never had", name, tip.Slot, tip.Seq)
			}
		}
		n.mustStop()
	}
}

// sameEnd holds where a node ended against where another did, wherever the records lie.
func sameEnd(got, want *ledger.Head) error {
	if got == nil {
		return errors.New("shows nothing")
	}
	for level := range got.Tips {
		if x, y := got.Tips[level], want.Tips[level]; x.Slot != y.Slot || x.Hash != y.Hash || x.Seq != y.Seq {
			return fmt.Errorf("stands at %+v at level %d, want %+v", x, level, y)
		}
	}
	if got.StateHash != want.StateHash {
		return fmt.Errorf("has the state hash %s, want %s", got.StateHash, want.StateHash)
	}
	return nil
}

// TestWriterKnowsWhetherTheSourceSpeaksOfFinality has a node take over from one whose source said what is
// confirmed and final, or never did. With the first nothing becomes final by depth.
func TestWriterKnowsWhetherTheSourceSpeaksOfFinality(t *testing.T) {
	for name, tt := range map[string]struct {
		say    func(chain []*ledger.Block) []ledger.Event
		status ledger.Commitment // that blocks come with
		spoke  bool
	}{
		"nothing":   {nil, ledger.Processed, false},
		"confirmed": {func(c []*ledger.Block) []ledger.Event { return []ledger.Event{status(c[1], ledger.StatusConfirmed)} }, ledger.Processed, true},
		"final":     {func(c []*ledger.Block) []ledger.Event { return []ledger.Event{status(c[2], ledger.StatusFinalized)} }, ledger.Processed, true},
		"dead":      {func(c []*ledger.Block) []ledger.Event { return []ledger.Event{status(c[4], ledger.StatusDead), c[5]} }, ledger.Processed, true},
		"final, as deep as by depth": {func(c []*ledger.Block) []ledger.Event {
			nothing := &ledger.SlotStatus{Slot: 9999, Status: ledger.StatusConfirmed} // which no record tells
			deep := append([]ledger.Event{nothing}, events(c[5:sequencer.FinalityDepth+4]...)...)
			return append(deep, status(c[3], ledger.StatusFinalized))
		}, ledger.Processed, true},
		"blocks are final": {nil, ledger.Finalized, false},
	} {
		t.Run(name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				l := newSharedLedger()
				root := rootBlock(100, lamports(key(1), 5))
				chain := append([]*ledger.Block{root}, chainOf(root, sequencer.FinalityDepth+6)...)
				for _, b := range chain {
					b.Status = tt.status
				}
				member := func() clusterNode {
					c := onDisk(t, vfstest.NewMemory(), Config{Shards: 1})
					if err := c.Dir.BindCluster("the ledger", datadir.FactsOf(finite(), nil, false)); err != nil {
						t.Fatal(err)
					}
					return startMemberOf(t, l, newScript(finite()), c)
				}
				first, second := member(), member()
				l.grant(first.member)
				synctest.Wait()
				first.send(events(chain[:5]...)...)
				if tt.say != nil {
					first.send(tt.say(chain)...)
				}
				if spoke := first.Engine.config.Dir.Statuses(); spoke != tt.spoke {
					t.Fatalf("the first writer knows that it spoke: %v", spoke)
				}
				dir := second.Engine.config.Dir
				l.grant(second.member)
				first.mustStop()
				synctest.Wait()
				if spoke := dir.Statuses(); spoke != tt.spoke {
					t.Errorf("the second knows that it spoke: %v", spoke)
				}
				second.mustStop()
			})
		})
	}
}

// TestWriterFinalizesByDepthAfterAnother has the second writer go on where the first one's source was silent.
func TestWriterFinalizesByDepthAfterAnother(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		l := newSharedLedger()
		root := rootBlock(100, lamports(key(1), 5))
		chain := append([]*ledger.Block{root}, chainOf(root, sequencer.FinalityDepth+20)...)
		first := startMember(t, l, newScript(finite()), Config{Shards: 1})
		second := startMember(t, l, newScript(finite()), Config{Shards: 1})
		l.grant(first.member)
		synctest.Wait()
		first.send(events(chain[:sequencer.FinalityDepth+5]...)...)
		l.grant(second.member)
		synctest.Wait()
		if second.Engine.config.Dir.Statuses() {
			t.Fatal("finality by depth counts as a status")
		}
		second.send(events(chain[sequencer.FinalityDepth+5:]...)...)
		if got, want := second.Head().Tips[ledger.Finalized].Slot, chain[20].Slot; got != want {
			t.Errorf("slot %d is final, want %d", got, want)
		}
		if got, want := second.Head().Tips[ledger.Processed].Slot, chain[len(chain)-1].Slot; got != want {
			t.Errorf("slot %d is the newest, want %d", got, want)
		}
		second.mustStop()
		_ = first.stop()
	})
}
