package main

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"ledgerd/engine"
	"ledgerd/engine/datadir"
	"ledgerd/engine/importer"
	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/bubbletest"
	"ledgerd/engine/source/geyser"
	"ledgerd/engine/source/nodetest"
	"ledgerd/engine/source/rpc"
	"ledgerd/snapshot/vfs/vfstest"
)

// liveSource makes the source under test, which follows a node and needs the accounts alone that a filter selects; nil: all.
type liveSource func(n *nodetest.Node, config nodetest.Config, f *ledger.Filter) ledger.Source

// callsAlone follows a node over JSON-RPC.
func callsAlone(n *nodetest.Node, c nodetest.Config, _ *ledger.Filter) ledger.Source {
	return rpc.New(callsConfig(n, c))
}

func callsConfig(n *nodetest.Node, c nodetest.Config) rpc.Config {
	u, err := url.Parse(n.CallsURL() + "/" + c.Token)
	if err != nil {
		panic(err)
	}
	return rpc.Config{URL: u, Dial: n.Dial, MaxBlock: 4 << 20, MaxAccounts: 4 << 20, Logger: quietLog(), Random: halves}
}

// streamAndCalls follows a node over its stream as g says, and fills gaps over JSON-RPC.
func streamAndCalls(g geyser.Config) liveSource {
	return func(n *nodetest.Node, c nodetest.Config, f *ledger.Filter) ledger.Source {
		g, calls := streamConfig(g, n, c), rpc.New(callsConfig(n, c))
		if f != nil {
			g.Accounts = f.Accounts()
		}
		g.Filler = calls
		return closesIdle{geyser.New(g), calls}
	}
}

// closesIdle gives the filler's connections back when its source ends.
type closesIdle struct {
	*geyser.Source
	calls *rpc.Source
}

func (s closesIdle) Fetch(ctx context.Context, keys []ledger.Pubkey, level ledger.Commitment) (*ledger.BaseState, error) {
	return s.calls.Fetch(ctx, keys, level)
}

func (s closesIdle) Run(ctx context.Context, from *ledger.ResumePoint, emit ledger.Emit) error {
	defer s.calls.CloseIdle()
	return s.Source.Run(ctx, from, emit)
}

func streamConfig(g geyser.Config, n *nodetest.Node, c nodetest.Config) geyser.Config {
	g.Addresses, g.Headers.Token, g.Dial = []string{strings.TrimPrefix(n.StreamURL(), "http://")}, c.Token, n.Dial
	g.MessageBytes, g.Logger, g.Random = 1<<20, quietLog(), halves
	return g
}

// halves stands in for chance: every wait that is drawn is half as long as it may be.
func halves(n int64) int64 { return n / 2 }

// listed returns a filter of the mints that a ledger begins with and of every third of its other accounts.
func listed(l *nodetest.Ledger) *ledger.Filter {
	var keys []ledger.Pubkey
	for i := range l.Base.Accounts {
		if a := &l.Base.Accounts[i]; i%3 == 0 || a.Mint != nil {
			keys = append(keys, a.Pubkey)
		}
	}
	return ledger.NewFilter(nil, keys)
}

// imported returns a data directory into which the state before a ledger's first block was imported, as far as a filter selects it.
func imported(t *testing.T, l *nodetest.Ledger, f *ledger.Filter) *datadir.Dir {
	t.Helper()
	disk := vfstest.NewMemory()
	d, _, err := datadir.OpenForImport(disk, "data")
	must(t, err)
	i, err := importer.New(importer.Config{Dir: d, Filter: f, Logger: quietLog(), SegmentBytes: 1 << 20})
	must(t, err)
	for n := range l.Base.Accounts {
		must(t, i.Add(l.Base.Slot, 0, &l.Base.Accounts[n]))
	}
	_, err = i.Finish(t.Context(), importer.Point{Slot: l.Base.Slot, Blockhash: l.Main()[0].PreviousBlockhash.Value})
	must(t, err)
	i.Close()
	d.Close()
	d, err = datadir.OpenOn(disk, "data")
	must(t, err)
	return d
}

// liveRun is an engine that follows a test node through a schedule, in a bubble.
type liveRun struct {
	t        *testing.T
	schedule *nodetest.Schedule
	ledger   *nodetest.Ledger
	filter   *ledger.Filter // of what is held; nil: all
	node     *nodetest.Node
	engine   *engine.Engine
	chain    published
	ended    chan struct{}
	err      error // of Run, after ended
	cancel   context.CancelFunc
}

// startNode starts a test node. Who starts it closes it.
func startNode(t testing.TB, l *nodetest.Ledger, c nodetest.Config) *nodetest.Node {
	t.Helper()
	n := nodetest.New(l, c)
	must(t, n.Start())
	return n
}

// startLive starts a node and an engine that follows it, and holds all accounts or some.
func startLive(t *testing.T, s *nodetest.Schedule, source liveSource, some bool) *liveRun {
	t.Helper()
	l, err := nodetest.Simulated(s.Parameters, s.Finality, s.Turns...)
	must(t, err)
	r := &liveRun{t: t, schedule: s, ledger: l, ended: make(chan struct{})}
	if some {
		r.filter = listed(l)
	}
	r.node = startNode(t, r.ledger, s.Config)
	dir := imported(t, r.ledger, r.filter)
	follows := source(r.node, s.Config, r.filter)
	fetcher, _ := follows.(ledger.Fetcher)
	r.engine = engine.New(engine.Config{
		Source: follows, Fetcher: fetcher, MintsOnly: true, Dir: dir, Shards: 2, Logger: quietLog(), OnPublish: r.chain.take,
	})
	var ctx context.Context
	ctx, r.cancel = context.WithCancel(context.Background())
	go func() {
		defer close(r.ended)
		r.err = r.engine.Run(ctx)
		_ = dir.Close()
	}()
	return r
}

// play tells the ledger by the clock, with what goes wrong, until all is well again at slot HealAt; then it goes on
// to the end. It returns how long the engine took from then on until it held what the node had told.
func (r *liveRun) play() time.Duration {
	r.t.Helper()
	faults := r.schedule.Faults
	var healed time.Time
	ready := time.Duration(-1)
	for slot := 0; r.node.Advance(1); slot++ {
		for ; len(faults) > 0 && faults[0].Slot <= slot; faults = faults[1:] {
			r.node.Inject(faults[0].Fault)
		}
		if slot == nodetest.HealAt {
			r.node.Heal()
			healed = time.Now()
		}
		if !r.sleep(nodetest.SlotTime) {
			return 0
		}
		// A source that asks may be a few slots behind.
		keepsUp := r.tip(ledger.Confirmed)+3 >= r.node.Tip(ledger.Confirmed) && r.tip(ledger.Confirmed) > 0
		if slot >= nodetest.HealAt && ready < 0 && keepsUp {
			ready = time.Since(healed)
		}
	}
	// The last words; and what a block does not tell is asked for after it.
	for range 25 {
		if r.isDone() && r.rightState() == nil || !r.sleep(nodetest.SlotTime) {
			break
		}
	}
	switch {
	case !r.isDone():
		r.fail("it is not at the end: health %q, finalized slot %d, of the node %d", r.engine.Status().Unhealthy, r.tip(ledger.Finalized), r.node.Tip(ledger.Finalized))
	case ready < 0 || ready > readyWithin:
		r.fail("it kept up %v after all was well again, want %v at most", ready, readyWithin)
	}
	return ready
}

// readyWithin is how long a node may take, in simulated time, until it keeps up once everything is well again: a
// pause of 10 seconds that just began, what was missed, and the tries between.
const readyWithin = 25 * time.Second

// sleep waits, and returns false if the engine ended.
func (r *liveRun) sleep(d time.Duration) bool {
	r.t.Helper()
	select {
	case <-r.ended:
		r.fail("the engine ended: %v", r.err)
		return false
	case <-time.After(d):
		return true
	}
}

// isDone reports whether the engine holds all of the ledger, finalized but for the last block: a stream's word on that
// is believed once another builds on it.
func (r *liveRun) isDone() bool {
	main := r.ledger.Main()
	n := len(main)
	return r.tip(ledger.Processed) == main[n-1].Slot && r.tip(ledger.Finalized) >= main[n-2].Slot
}

// rightState holds what is held in the end against the truth: the state hash where that is everything, else each account.
func (r *liveRun) rightState() error {
	main := r.ledger.Main()
	end := main[len(main)-1].Slot
	if r.filter == nil {
		if got, want := r.engine.Head().StateHash, r.ledger.StateHash(end); got != want {
			return fmt.Errorf("state hash %s, want %s", got, want)
		}
		return nil
	}
	truth := r.ledger.Accounts(end)
	all, _, err := r.engine.Accounts(ledger.Query{}, r.filter.Accounts())
	for i := range all {
		want := ledger.Account{}
		if w := truth[all[i].Pubkey]; w != nil {
			want = *ledger.Merge(nil, w, ledger.BaseProvenance(end))
		}
		if all[i].Exists() != want.Exists() || want.Exists() && all[i].StateTerm() != want.StateTerm() {
			return fmt.Errorf("got %+v, want %+v", all[i], want)
		}
	}
	return err
}

// tip returns the newest slot of a level that the engine shows, 0 before the first.
func (r *liveRun) tip(level ledger.Commitment) ledger.Slot {
	if h := r.engine.Head(); h != nil && h.HasBlock {
		return h.Tip(level).Slot
	}
	return 0
}

// check compares what the engine holds with the truth.
func (r *liveRun) check() {
	r.t.Helper()
	main := r.ledger.Main()
	if r.t.Failed() {
		return
	}
	if err := r.chain.is(main); err != nil {
		r.fail("%v", err)
	}
	if err := r.rightState(); err != nil {
		r.fail("%v", err)
	}
	if why := r.engine.Status().Unhealthy; why != "" && r.engine.Status().Peers > 0 {
		r.fail("health says %q", why)
	}
}

func (r *liveRun) fail(format string, args ...any) {
	r.t.Helper()
	r.t.Errorf(format+"\n%+v\nagain: LEDGERD_FAULT_SEED=%d go test -run '%s' ./cmd/ledgerd", append(args, r.schedule, r.schedule.Seed, strings.Split(r.t.Name(), "/")[0])...)
}

// stop ends the engine and the node.
func (r *liveRun) stop() {
	r.cancel()
	<-r.ended
	if r.err != nil && !r.t.Failed() {
		r.fail("the engine ended: %v", r.err)
	}
	r.node.Close()
}

// published holds what was published: the chain as clients saw it grow.
type published struct {
	mu     sync.Mutex
	blocks []*ledger.Record
	wrong  error
	undone int
}

// take notes a publication, and the first thing that is wrong with it.
func (f *published) take(p *ledger.Publication) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, r := range p.Records {
		switch r.Kind {
		case ledger.BlockRecord:
			if n := len(f.blocks); n > 0 && f.wrong == nil {
				if tip := f.blocks[n-1]; r.Block.ParentSlot != tip.Slot || r.Block.PreviousBlockhash.Value != tip.Hash {
					f.wrong = fmt.Errorf("block %d was put on block %d", r.Slot, tip.Slot)
				}
			}
			f.blocks = append(f.blocks, r)
		case ledger.RollbackRecord:
			for len(f.blocks) > 0 && f.blocks[len(f.blocks)-1].Hash != r.Hash {
				f.blocks, f.undone = f.blocks[:len(f.blocks)-1], f.undone+1
			}
		}
	}
}

// is reports whether the chain is made of these blocks, without a gap.
func (f *published) is(want []*ledger.Block) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.wrong != nil {
		return f.wrong
	}
	if len(f.blocks) != len(want) {
		return fmt.Errorf("the chain has %d blocks, want %d", len(f.blocks), len(want))
	}
	for i, b := range want {
		if got := f.blocks[i]; got.Slot != b.Slot || got.Hash != b.Blockhash || got.Block.ParentSlot != b.ParentSlot {
			return fmt.Errorf("block %d of the chain is %d %s, want %d %s", i, got.Slot, got.Hash, b.Slot, b.Blockhash)
		}
	}
	return nil
}

// inBubble runs a schedule with a source, of all accounts or of some.
func inBubble(t *testing.T, s *nodetest.Schedule, source liveSource, some bool) {
	t.Helper()
	bubbletest.Test(t, func(t *testing.T) {
		r := startLive(t, s, source, some)
		defer r.stop()
		took := r.play()
		r.check()
		t.Logf("keeps up after %v, %d blocks undone, %d subscriptions\n%+v", took, r.chain.undone, r.node.Subscriptions(), s)
	})
}

// faultSeeds returns the seeds to run: one by LEDGERD_FAULT_SEED, or the first N by LEDGERD_FAULT_SCHEDULES or of a sample, which is smaller
// with -short. make crash runs 200, make live 2,000.
func faultSeeds(t *testing.T) (seeds []uint64) {
	t.Helper()
	if text, ok := os.LookupEnv("LEDGERD_FAULT_SEED"); ok {
		seed, err := strconv.ParseUint(text, 10, 64)
		must(t, err)
		return []uint64{seed}
	}
	for seed := range uint64(repetitions(t, "LEDGERD_FAULT_SCHEDULES", 8)) {
		seeds = append(seeds, seed)
	}
	return seeds
}

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
			inBubble(t, nodetest.NewSchedule(seed, seed%4 == 3), sources[seed%4], false)
		})
		if seed%8 == 1 {
			t.Run(fmt.Sprint(seed, " of some accounts"), func(t *testing.T) {
				inBubble(t, nodetest.NewSchedule(seed, false), streamAndCalls(geyser.Config{WholeData: true}), true)
			})
		}
	}
}
