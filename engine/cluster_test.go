package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"ledgerd/engine/codec"
	"ledgerd/engine/datadir"
	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/bubble"
	"ledgerd/engine/sequencer"
	"ledgerd/engine/source/sim"
	"ledgerd/snapshot/vfs/vfstest"
)

// simSlots is the ledger that clusters of the test follow: some 240 slots of 400 ms, with forks and skips.
const simSlots = "seed=%d,accounts=1500,slot_time=400ms,tps=40,fork_rate=0.2,skip_rate=0.1,finality=8,slots=240"

// group is a cluster whose nodes are killed, parted, deposed and begun anew.
type group struct {
	t      *testing.T
	r      *rand.Rand // of the goroutine that leads the test
	losses *rand.Rand // of beforeCommit
	log    *sharedLedger
	ledger string
	nodes  []*groupNode

	mu      sync.Mutex // guards what follows
	offered []offered
	shown   map[ledger.Version]string // every record that any node ever showed, encoded
	all     []*ledger.Publication     // that any node ever showed

	deposed, killed, begun, restarted int
}

type groupNode struct {
	*clusterNode
	g       *group
	ingests bool
	offers  bool
	disk    *vfstest.Memory
	dir     *datadir.Dir
	newest  ledger.Version // shown since the start
}

func newGroup(t *testing.T, seed uint64) *group {
	g := &group{
		t: t, r: rand.New(rand.NewPCG(seed, 7)), losses: rand.New(rand.NewPCG(seed, 8)), log: newSharedLedger(), ledger: fmt.Sprintf(simSlots, seed%1000+1),
		shown: map[ledger.Version]string{},
	}
	g.log.before = g.beforeCommit
	for i := range 5 {
		n := &groupNode{g: g, ingests: i < 2, offers: i == 2, disk: vfstest.NewMemory()}
		g.nodes = append(g.nodes, n)
		n.start()
	}
	return g
}

func (g *group) chance(percent int) bool { return g.r.IntN(100) < percent }

func (g *group) newestOffered() *offered {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.offered) == 0 {
		return nil
	}
	return &g.offered[len(g.offered)-1]
}

func (g *group) source() Source {
	s, err := sim.Open(g.ledger)
	if err != nil {
		g.t.Fatal(err)
	}
	return s
}

func (n *groupNode) start() {
	g := n.g
	d, err := datadir.OpenOn(n.disk, "data")
	if err != nil {
		g.t.Fatal(err)
	}
	n.dir, n.newest = d, 0
	info := g.source().Info()
	if n.ingests {
		err = d.BindSource(info)
	}
	if err == nil {
		err = d.BindCluster("the ledger", datadir.FactsOf(info, nil, false))
	}
	if err != nil {
		g.t.Fatal(err)
	}
	if held, err := d.HoldsRecords(g.t.Context()); err != nil {
		g.t.Fatal(err)
	} else if o := g.newestOffered(); !held && o != nil && g.chance(70) {
		if err = o.fetch(n.disk); err == nil {
			err = datadir.Adopt(g.t.Context(), d, o.Record, slog.New(slog.DiscardHandler))
		}
		if err != nil {
			g.t.Fatal(err)
		}
		g.begun++
	}
	c := Config{
		Dir: d, Shards: 1 + g.r.IntN(4), Retention: sequencer.Retention{Slots: 60, Bytes: 1 << 30}, SegmentBytes: 64 << 10,
		SnapshotInterval: 5 * time.Second, OnPublish: n.saw,
	}
	if n.offers {
		c = offers(c, func(o offered) {
			g.mu.Lock()
			defer g.mu.Unlock()
			g.offered = append(g.offered, o)
		})
	}
	var source Source
	if n.ingests {
		source = g.source()
	}
	started := startMemberOf(g.t, g.log, source, c)
	g.log.mu.Lock()
	n.clusterNode = &started
	g.log.mu.Unlock()
}

// saw checks what a node shows while it does.
func (n *groupNode) saw(p *ledger.Publication) {
	g := n.g
	g.mu.Lock()
	defer g.mu.Unlock()
	head := p.Head
	for _, r := range p.Records {
		if n.newest != 0 && r.Version <= n.newest {
			g.t.Errorf("record %d was shown after %d", r.Version, n.newest)
		}
		if n.newest != 0 && r.Version != n.newest+1 {
			g.t.Errorf("record %d was shown after %d", r.Version, n.newest)
		}
		n.newest = r.Version
		b := visible(r)
		if was, ok := g.shown[r.Version]; ok && was != b {
			g.t.Errorf("record %d is not the same on all nodes", r.Version)
		}
		g.shown[r.Version] = b
	}
	n.newest = max(n.newest, head.Tips[0].Version)
	g.all = append(g.all, p)
}

// visible returns what is the same of a record on all nodes: all but when an account was closed before, which a
// node knows for about as long as it retains that.
func visible(r *ledger.Record) string {
	c, err := codec.DecodeRecord(codec.AppendRecord(nil, r))
	if err != nil {
		panic(err)
	}
	forget := func(a *ledger.Account) {
		if a.Since = 0; !a.Exists() {
			a.Provenance = 0
		}
	}
	for i := range c.Updates {
		forget(&c.Updates[i].Account)
	}
	for i := range c.Unchanged {
		forget(&c.Unchanged[i])
	}
	return string(codec.AppendRecord(nil, c))
}

// beforeCommit has the writer lose its place now and then, before or after its commit got into the log.
func (g *group) beforeCommit(m *member, commit []*ledger.Record) error {
	if g.losses.IntN(20) > 0 {
		return nil
	}
	other := g.candidateLocked(g.losses, m)
	if other == nil {
		return nil
	}
	if g.losses.IntN(2) == 0 {
		g.log.appendLocked(commit)
	}
	g.deposed++
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
	n.dir.Close()
	g.log.mu.Lock()
	n.clusterNode = nil
	g.log.mu.Unlock()
	g.killed++
}

// step does one thing to the group.
func (g *group) step() {
	time.Sleep(time.Duration(g.r.IntN(int(3 * time.Second))))
	synctest.Wait()
	for _, n := range g.nodes {
		if n.clusterNode != nil && n.hasEnded() { // deposed, or something is wrong
			n.stop()
		}
	}
	n := g.nodes[g.r.IntN(len(g.nodes))]
	switch g.r.IntN(4) {
	case 0:
		if n.clusterNode != nil {
			n.stop()
		}
	case 1:
		if n.clusterNode != nil {
			n.cutOff(g.chance(50))
		}
	default:
		if n.clusterNode == nil {
			n.start()
			g.restarted++
		}
	}
	g.elect()
}

// elect has somebody write where nobody does.
func (g *group) elect() {
	g.log.mu.Lock()
	defer g.log.mu.Unlock()
	for _, m := range []*member{g.log.writer, g.log.heir} {
		for _, n := range g.nodes {
			if m != nil && n.clusterNode != nil && n.member == m && !n.hasEnded() {
				return
			}
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
		time.Sleep(10 * time.Second)
		synctest.Wait()
	}
	for i, n := range g.nodes {
		h := n.Head()
		if h == nil {
			g.t.Fatalf("node %d shows nothing: %s", i, n.Status().Unhealthy)
		}
		for level := range h.Tips {
			if x, y := h.Tips[level], want.Tips[level]; x.Slot != y.Slot || x.Hash != y.Hash || x.Seq != y.Seq {
				g.t.Errorf("node %d stands at %+v at level %d, want %+v: %s", i, x, level, y, n.Status().Unhealthy)
			}
		}
		if h.StateHash != want.StateHash {
			g.t.Errorf("node %d has the state hash %s, want %s", i, h.StateHash, want.StateHash)
		}
	}
}

// TestClusterShowsOneLedger follows the simulator with two nodes that may write and three that may not. They
// are killed, lose their disks, are parted from the log, and lose their place in the middle of a commit. All that
// is ever shown is one ledger, that of a single node which nothing befell.
func TestClusterShowsOneLedger(t *testing.T) {
	few := 3
	if testing.Short() {
		few = 1 // the race detector takes ten times as long
	}
	for round := range rounds(t, few) {
		seed := seeded(t, uint64(round+1)).Uint64()
		bubble.Test(t, func(t *testing.T) { followGroup(t, seed) })
		if t.Failed() {
			return
		}
	}
}

// standing names a state of the ledger, wherever its record lies.
type standing struct {
	slot ledger.Slot
	hash ledger.Hash
	seq  ledger.Seq
	sum  ledger.StateHash
}

// straight follows the ledger with one node, and returns the states it passed and where it ended.
func straight(t *testing.T, parameters string) (points map[standing]bool, end *ledger.Head) {
	points = map[standing]bool{}
	var trail headTrail
	source, err := sim.Open(parameters)
	if err != nil {
		t.Fatal(err)
	}
	n := &subject{t: t}
	n.Engine = New(Config{Source: source, Shards: 2, Logger: slog.New(slog.DiscardHandler), OnPublish: func(p *ledger.Publication) {
		for _, r := range p.Records {
			tip := trail.After([]*ledger.Record{r}).Tips[0]
			points[standing{tip.Slot, tip.Hash, tip.Seq, r.StateHash}] = true
		}
	}})
	ended := make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { ended <- n.Run(ctx) }()
	time.Sleep(10 * time.Minute)
	end = n.Head()
	cancel()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	return points, end
}

func followGroup(t *testing.T, seed uint64) {
	g := newGroup(t, seed)
	points, want := straight(t, g.ledger)
	g.elect()
	for range 60 {
		g.step()
		if t.Failed() {
			break
		}
	}
	g.settle(want)
	records := g.log.records()
	for v, b := range g.shown {
		if int(v) > len(records) || visible(records[v-1]) != b {
			t.Errorf("record %d was shown, and the log does not hold it", v)
		}
	}
	checkHeads(t, g.log, g.all)
	for _, p := range g.all {
		if tip := p.Head.Tips[0]; p.Head.HasBlock && !points[standing{tip.Slot, tip.Hash, tip.Seq, p.Head.StateHash}] {
			t.Errorf("shown: slot %d, seq %d, state hash %s, which the ledger never had", tip.Slot, tip.Seq, p.Head.StateHash)
		}
	}
	for _, n := range g.nodes {
		n.mustStop()
		n.dir.Close()
		mustVerify(t, n.disk)
	}
	t.Logf("%d records, %d publications, %d snapshots offered; %d deposed, %d killed, %d restarted, %d begun with a snapshot",
		len(records), len(g.all), len(g.offered), g.deposed, g.killed, g.restarted, g.begun)
}
