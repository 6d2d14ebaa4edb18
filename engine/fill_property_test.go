package engine

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/bubbletest"
	"ledgerd/snapshot/vfs/vfstest"
)

// filledRun is a node whose source shows blocks alone, and that is asked all the time. It fetches from a node that knows all
// of the ledger. The model is ahead: it knows events that the source shows later.
type filledRun struct {
	*subject
	t      *testing.T
	filter *ledger.Filter
	disk   *vfstest.Memory
	r      *rand.Rand // of the goroutine that leads the test
	told   []ledger.Event
	untold []ledger.Event
	asking sync.WaitGroup

	mu                sync.Mutex // guards what follows
	chance            *rand.Rand
	g                 *generator
	worlds            map[*modelBlock]*world
	answered, refused int
}

func newFilledRun(t *testing.T, seed uint64, filtered bool) *filledRun {
	m := newModel(partial())
	f := &filledRun{
		t: t, disk: vfstest.NewMemory(), r: rand.New(rand.NewPCG(seed, 2)), chance: rand.New(rand.NewPCG(seed, 3)),
		g: newGenerator(seed, m), worlds: make(map[*modelBlock]*world),
	}
	f.g.exact, f.g.blocksOnly, f.g.whole = true, true, filtered
	if filtered {
		f.filter = ledger.NewFilter([]ledger.Pubkey{ledger.TokenProgram}, nil)
	}
	before := &ledger.BaseState{Slot: 9} // what nobody shows the node
	for i := range testKeys / 2 {
		before.Accounts = append(before.Accounts, owned(key(i), ledger.Lamports(1000+i), testPrograms()[i%2]))
	}
	m.event(before)
	return f
}

// worldAt returns the world after a block: what was there before the root, and what each block on the way wrote.
func (f *filledRun) worldAt(b *modelBlock) *world {
	if w := f.worlds[b]; w != nil {
		return w
	}
	var w *world
	if b.parent == nil {
		w = f.g.m.records[0].world.clone()
	} else {
		w = f.worldAt(b.parent).clone()
	}
	w.learnBlock(b.Block)
	f.worlds[b] = w
	return w
}

func (f *filledRun) made(h ledger.Hash) *modelBlock {
	return f.g.made[slices.IndexFunc(f.g.made, func(b *modelBlock) bool { return b.Blockhash == h })]
}

// Fetch answers as of the newest final block or, as nodes behind a balancer do, one before.
func (f *filledRun) Fetch(_ context.Context, keys []ledger.Pubkey, _ ledger.Commitment) (*ledger.BaseState, error) {
	f.pause()
	defer f.pause()
	f.mu.Lock()
	defer f.mu.Unlock()
	place := f.g.m.finalized
	for place > 0 && f.chance.IntN(3) == 0 {
		place--
	}
	if f.chance.IntN(10) == 0 {
		return nil, &ledger.UpstreamError{}
	}
	at := f.made(f.g.m.chain[place].Blockhash)
	base := &ledger.BaseState{Slot: at.Slot}
	for _, k := range keys {
		s := f.worldAt(at).see(k)
		base.Accounts = append(base.Accounts, ledger.AccountWrite{
			Pubkey: k, Lamports: s.lamports, Owner: s.owner.Value, Executable: s.executable.Value,
			RentEpoch: s.rentEpoch.Value, Known: ledger.FieldsAll,
		})
	}
	return base, nil
}

func (f *filledRun) pause() {
	f.mu.Lock()
	wait := time.Duration(f.chance.IntN(600)) * time.Millisecond
	f.mu.Unlock()
	time.Sleep(wait)
}

// check holds an answer against the world after the very block that it says it is from.
func (f *filledRun) check(level ledger.Commitment, k ledger.Pubkey, r reply) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if errors.Is(r.err, ledger.ErrUnavailable) {
		f.refused++
		return
	}
	f.answered++
	tip := r.view.Tip()
	got, want := seeAccount(&r.account), f.worldAt(f.made(tip.Hash)).see(k)
	why, missing := absence(r.err)
	right := missing && want.lamports == 0 || r.err == nil && got.lamports == want.lamports && agree(got.owner, want.owner) &&
		agree(got.executable, want.executable) && agree(got.rentEpoch, want.rentEpoch)
	if f.filter != nil && why.Absence == ledger.AccountNotIndexed {
		// An account that is not of the wanted program any more may be called so at every level.
		right = level != ledger.Processed || !want.ownedBy(ledger.TokenProgram)
	}
	if !right {
		f.t.Errorf("%v at slot %d: got %v, %v, want %v", level, tip.Slot, got, r.err, want)
	}
}

func agree[T comparable](a, b ledger.Opt[T]) bool { return a == b || !a.Known || !b.Known }

// start runs the node on what the disk kept, and shows again what is not final there.
func (f *filledRun) start() {
	f.t.Helper()
	c := bound(f.t, onDisk(f.t, f.disk, Config{Shards: 1 + f.r.IntN(4), SnapshotInterval: 3 * time.Second, Fetcher: f}), f.filter, nil)
	f.subject = startNode(f.t, partial(), c)
	synctest.Wait()
	if f.Head() == nil {
		return
	}
	final := f.Head().Tip(ledger.Finalized).Slot
	for _, e := range f.told {
		switch e := e.(type) {
		case *ledger.Block:
			if e.Slot > final && e.ParentSlot >= final {
				f.send(e)
			}
		case *ledger.SlotStatus:
			if e.Slot > final && e.Status != ledger.StatusDead {
				f.send(e)
			}
		}
	}
}

// restart cuts the power.
func (f *filledRun) restart() {
	disk := f.disk.Crash(f.r.Float64(), f.r.Uint64())
	f.mustStop()
	f.asking.Wait()
	f.disk = disk
	f.start()
}

func (f *filledRun) step() {
	switch n := f.r.IntN(20); {
	case n < 9: // the ledger goes on, and the source shows it later
		f.mu.Lock()
		if e := f.g.next(); e != nil {
			f.g.m.event(e)
			f.untold = append(f.untold, e)
		}
		f.mu.Unlock()
		for len(f.untold) > f.r.IntN(8) {
			f.told, f.untold = append(f.told, f.untold[0]), f.untold[1:]
			f.send(f.told[len(f.told)-1])
		}
	case n == 9:
		time.Sleep(time.Duration(f.r.IntN(3000)) * time.Millisecond)
	case n == 10 && f.r.IntN(10) == 0:
		f.restart()
	case f.Head() != nil:
		level, k, n := levels[f.r.IntN(3)], key(f.r.IntN(testKeys)), f.subject
		f.asking.Go(func() { f.check(level, k, <-n.ask(at(level), k)) })
		time.Sleep(time.Duration(f.r.IntN(100)) * time.Millisecond)
	}
}

// TestFilledAnswersAreTrueAtTheirBlock asks for accounts of a ledger with forks, at every level and
// all the time, of a node that lags, answers late and fails, and with power cuts: each
// answer is what the block has that it says it is from.
func TestFilledAnswersAreTrueAtTheirBlock(t *testing.T) {
	for round := range sample(40, 8, 2) {
		seed := seeded(t, uint64(round+1)).Uint64()
		bubbletest.Test(t, func(t *testing.T) {
			f := newFilledRun(t, seed, round%2 == 1)
			f.start()
			for n := 0; n < 600 && !t.Failed(); n++ {
				f.step()
			}
			f.asking.Wait()
			f.mustStop()
			if why := f.Status().Unhealthy; strings.Contains(why, "ingest stopped") || f.answered < 30 || f.refused == 0 {
				t.Errorf("%d answers and %d refusals, health says %q", f.answered, f.refused, why)
			}
		})
		if t.Failed() {
			return
		}
	}
}
