package engine

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"ledgerd/engine/datadir"
	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/bubbletest"
	"ledgerd/engine/ledger/ledgertest"
	"ledgerd/engine/published"
	"ledgerd/engine/sequencer"
	"ledgerd/engine/source/sim"
	"ledgerd/snapshot/vfs/vfstest"
)

// simSlots is the ledger that clusters of the test follow: base state in several records, then so many slots of 400 ms, with
// forks and skips.
const simSlots = "seed=%d,accounts=4500,slot_time=400ms,tps=40,fork_rate=0.2,skip_rate=0.1,finality=8,slots=%d"

// simulator opens a ledger of the simulator.
func simulator(t *testing.T, parameters string) ledger.Source {
	t.Helper()
	s, err := sim.Open(parameters)
	must(t, err)
	return s
}

// standing names a state of the ledger, wherever its record lies.
func standing(tip ledger.Tip, sum ledger.StateHash) string {
	return fmt.Sprintf("slot %d, block %s, seq %d, state hash %s", tip.Slot, tip.Hash, tip.Seq, sum)
}

// straightRun is what one node shows of a ledger when nothing befalls it.
type straightRun struct {
	passed map[string]bool
	end    *ledger.Head
}

// straight follows a ledger of the simulator with one node.
func straight(t *testing.T, parameters string) straightRun {
	s := straightRun{passed: map[string]bool{}}
	n := startSource(t, simulator(t, parameters), Config{Shards: 2})
	time.Sleep(10 * time.Minute)
	n.mustStop()
	var trail published.Trail
	for _, r := range n.records() {
		tip := trail.After([]*ledger.Record{r}).Tips[0]
		s.passed[standing(tip, r.StateHash)] = true
	}
	s.end = n.Head()
	return s
}

// check holds what each run of a node of a cluster showed against the shared log and the straight run.
func (s *straightRun) check(l *sharedLedger, runs ...[]*ledger.Publication) error {
	logged := l.records()
	for _, published := range runs {
		newest := ledger.Version(0)
		for _, p := range published {
			for _, r := range p.Records {
				if newest != 0 && r.Version != newest+1 {
					return fmt.Errorf("record %d was shown after %d", r.Version, newest)
				}
				if newest = r.Version; int(newest) > len(logged) || logged[newest-1].Digest() != r.Digest() {
					return fmt.Errorf("record %d was shown, and the log does not hold it", newest)
				}
			}
			tip := p.Head.Tips[0]
			newest = max(newest, tip.Version)
			if shown := standing(tip, p.Head.StateHash); p.Head.HasBlock && !s.passed[shown] {
				return fmt.Errorf("shown: %s, which the ledger never had", shown)
			}
		}
	}
	return nil
}

// group is a cluster whose nodes are killed, parted, deposed and begun anew.
type group struct {
	t      *testing.T
	r      *rand.Rand // of the goroutine that leads the test
	losses *rand.Rand // of beforeCommit
	log    *sharedLedger
	ledger string
	nodes  []*groupNode
	newest atomic.Pointer[offered] // snapshot
	shown  [][]*ledger.Publication // by each node that was stopped
}

type groupNode struct {
	*clusterNode // nil while it does not run; the log's mutex guards it
	g            *group
	ingests      bool
	offers       bool
	retention    sequencer.Retention
	disk         *vfstest.Memory
}

func newGroup(t *testing.T, seed uint64) *group {
	g := &group{
		t: t, r: rand.New(rand.NewPCG(seed, 7)), losses: rand.New(rand.NewPCG(seed, 8)), log: newSharedLedger(),
		ledger: fmt.Sprintf(simSlots, seed%1000+1, sample(240, 240, 100)),
	}
	g.log.info, g.log.before = simulator(t, g.ledger).Info(), g.beforeCommit
	for i := range 5 {
		n := &groupNode{g: g, ingests: i < 2, offers: i == 2, disk: vfstest.NewMemory()}
		n.retention = sequencer.Retention{Slots: ledger.Slot(5 + g.r.IntN(100)), Bytes: 1 << 30}
		g.nodes = append(g.nodes, n)
		n.start()
	}
	return g
}

func (g *group) chance(percent int) bool { return g.r.IntN(100) < percent }

func (n *groupNode) start() {
	g := n.g
	if offered := g.newest.Load(); offered != nil && g.chance(70) {
		must(g.t, offered.begin(g.t.Context(), n.disk))
	}
	c := onDisk(g.t, n.disk, Config{
		Shards: 1 + g.r.IntN(4), Retention: n.retention, SegmentBytes: 64 << 10,
		SnapshotInterval: 15 * time.Second,
	})
	if n.offers {
		c.SnapshotInterval = 5 * time.Second
		c = offers(c, func(o offered) { g.newest.Store(&o) })
	}
	var source ledger.Source
	if n.ingests {
		source = simulator(g.t, g.ledger)
	}
	started := startMember(g.t, g.log, source, c)
	g.log.mu.Lock()
	n.clusterNode = &started
	g.log.mu.Unlock()
}

// beforeCommit has the writer lose its place now and then, and often in the middle of base state, before or after its commit
// got into the log.
func (g *group) beforeCommit(m *member, commit []*ledger.Record) error {
	inBase := commit[0].Kind == ledger.BaseRecord && len(g.log.commits) > 0
	if often := g.losses.IntN(2) > 0; !(inBase && often) && g.losses.IntN(20) > 0 {
		return nil
	}
	other := g.candidateLocked(g.losses, m)
	if other == nil {
		return nil
	}
	if g.losses.IntN(2) == 0 {
		g.log.appendLocked(commit)
	}
	g.log.grantLocked(other.member)
	return ledger.ErrDeposed
}

// candidateLocked returns a running node that may become the writer. The log is locked.
func (g *group) candidateLocked(r *rand.Rand, but *member) *groupNode {
	for _, i := range r.Perm(2) {
		if n := g.nodes[i]; n.clusterNode != nil && n.member != but && !n.hasEnded() {
			return n
		}
	}
	return nil
}

// stop kills a node in one way or another. It comes back with what its disk kept, or with nothing.
func (n *groupNode) stop() {
	g := n.g
	switch g.r.IntN(5) {
	case 0: // a clean stop
	case 1: // the machine is gone
		n.disk = vfstest.NewMemory()
	default:
		n.disk = n.disk.Crash([]float64{0, 0.5, 1}[g.r.IntN(3)], g.r.Uint64())
	}
	if err := n.subject.stop(); err != nil && !errors.Is(err, ledger.ErrDeposed) {
		g.t.Errorf("ended: %v", err)
	}
	n.config.Dir.Close()
	g.shown = append(g.shown, n.published)
	g.log.mu.Lock()
	n.clusterNode = nil
	g.log.mu.Unlock()
}

// step does one thing to the group.
func (g *group) step() {
	pause(time.Duration(g.r.IntN(int(3 * time.Second))))
	for _, n := range g.nodes {
		if n.clusterNode != nil && n.hasEnded() { // deposed, or something is wrong
			n.stop()
		}
	}
	n := g.nodes[g.r.IntN(len(g.nodes))]
	switch does := g.r.IntN(4); {
	case n.clusterNode == nil && does > 1:
		n.start()
	case n.clusterNode == nil:
	case does == 0:
		n.stop()
	case does == 1:
		n.cutOff(g.chance(50))
	}
	g.elect()
}

// elect has somebody write where nobody does.
func (g *group) elect() {
	g.log.mu.Lock()
	defer g.log.mu.Unlock()
	for _, n := range g.nodes {
		if n.clusterNode != nil && !n.hasEnded() && (n.member == g.log.writer || n.member == g.log.heir) {
			return
		}
	}
	if n := g.candidateLocked(g.r, nil); n != nil {
		g.log.grantLocked(n.member)
	}
}

// settle has all nodes run and reach each other, until the ledger has come to its end.
func (g *group) settle(want *ledger.Head) {
	g.t.Helper()
	g.log.mu.Lock()
	g.log.before = nil
	g.log.mu.Unlock()
	for range 20 {
		for _, n := range g.nodes {
			if n.clusterNode != nil && n.hasEnded() {
				n.stop()
			}
			if n.clusterNode == nil {
				n.start()
			}
			n.cutOff(false)
		}
		g.elect()
		pause(10 * time.Second)
	}
	for i, n := range g.nodes {
		ledgertest.ErrorIs(g.t, sameEnd(n.Head(), want), nil, "node %d: %s", i, n.Status().Unhealthy)
		n.close()
		g.shown = append(g.shown, n.published)
		mustVerify(g.t, n.disk)
	}
}

// F53: TestALedgerOfItsOwnBeginsASharedLog has a node that was alone, or that imported its ledger, write a shared log that begins after
// that. Another node cannot follow it from nothing; with the founder's snapshot it comes to the same state.
func TestALedgerOfItsOwnBeginsASharedLog(t *testing.T) {
	bubbletest.Each(t, map[string]func(t *testing.T) (*vfstest.Memory, *ledger.Block){
		"alone": func(t *testing.T) (*vfstest.Memory, *ledger.Block) {
			disk := vfstest.NewMemory()
			n, root := diskNode(t, disk, Config{})
			last := n.finalize(root)
			n.close()
			return disk, last
		},
		"import": func(t *testing.T) (*vfstest.Memory, *ledger.Block) { return imported(t), at100 },
	}, func(t *testing.T, held func(t *testing.T) (*vfstest.Memory, *ledger.Block)) {
		disk, last := held(t)
		l := newSharedLedger()
		l.founds = true
		c := onDisk(t, disk, Config{Shards: 2, SnapshotInterval: time.Second})
		must(t, c.Dir.FoundCluster("the ledger", datadir.FactsOf(l.info, nil, nil, false)))
		var shots []offered
		w := startMember(t, l, newScript(l.info), offers(c, func(o offered) { shots = append(shots, o) }))
		w.mustLead()
		for range 6 {
			time.Sleep(time.Second)
			last = w.finalize(last)
		}
		w.mustStand(last.Slot)
		empty := startMember(t, l, nil, Config{Shards: 1})
		ledgertest.ErrorIs(t, empty.end(), ledger.ErrPurged, "from nothing")
		fresh := vfstest.NewMemory()
		must(t, shots[len(shots)-1].begin(t.Context(), fresh))
		other := startMember(t, l, nil, onDisk(t, fresh, Config{Shards: 1}))
		same(t, "the other", w.Engine, other.Engine)
	})
}

// F53, F54: TestClusterShowsOneLedger follows the simulator with two nodes that may write and three that may not. They
// are killed, lose their disks, are parted from the log, and lose their place in the middle of a commit. All that
// is ever shown is one ledger, that of a single node which nothing befell.
func TestClusterShowsOneLedger(t *testing.T) {
	for round := range sample(20, 1, 1) {
		seed := seeded(t, uint64(round+1)).Uint64()
		bubbletest.Test(t, func(t *testing.T) {
			g := newGroup(t, seed)
			want := straight(t, g.ledger)
			g.elect()
			for range sample(60, 40, 6) {
				g.step()
			}
			g.settle(want.end)
			must(t, want.check(g.log, g.shown...))
			t.Logf("%d records, %d runs", len(g.log.records()), len(g.shown))
		})
		if t.Failed() {
			return
		}
	}
}
