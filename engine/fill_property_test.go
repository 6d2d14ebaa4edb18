package engine

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/bubble"
	"ledgerd/snapshot/vfs/vfstest"
)

// truth is a ledger with forks, and what every account is after each of its blocks.
type truth struct {
	mu     sync.Mutex
	r      *rand.Rand
	blocks []*truthBlock // by arrival; the first is the root
	node   *truthBlock   // the newest that is final at the upstream node
	down   bool
	filter *ledger.Filter
}

type truthBlock struct {
	*ledger.Block
	parent *truthBlock
	state  map[ledger.Pubkey]ledger.Lamports
}

const truthKeys = 24

// ownerFor has accounts change hands between two programs.
func ownerFor(amount ledger.Lamports) ledger.Pubkey { return key(100 + int(amount/100%2)) }

func newTruth(r *rand.Rand) *truth {
	root := &truthBlock{Block: rootBlock(100), state: make(map[ledger.Pubkey]ledger.Lamports)}
	for i := range truthKeys / 2 {
		root.state[key(i)] = ledger.Lamports(1000 + i)
	}
	return &truth{r: r, blocks: []*truthBlock{root}, node: root}
}

// grow adds a block on parent, with writes that open, change and close accounts.
func (l *truth) grow(parent *truthBlock) *truthBlock {
	l.mu.Lock()
	defer l.mu.Unlock()
	newest := l.blocks[len(l.blocks)-1].Slot
	slot := newest + 1 + ledger.Slot(l.r.IntN(2))
	b := &truthBlock{parent: parent, state: maps.Clone(parent.state)}
	b.Block = child(parent.Block, slot, len(l.blocks))
	for _, i := range l.r.Perm(truthKeys)[:l.r.IntN(4)] {
		k, amount := key(i), ledger.Lamports(0)
		if l.r.IntN(3) > 0 {
			amount = ledger.Lamports(slot*100 + ledger.Slot(i))
		}
		if amount == 0 {
			delete(b.state, k)
		} else {
			b.state[k] = amount
		}
		b.Accounts = append(b.Accounts, owned(k, amount, ownerFor(amount)))
	}
	l.blocks = append(l.blocks, b)
	return b
}

// stands reports whether b is a or builds on it.
func (b *truthBlock) stands(on *truthBlock) bool {
	for ; b != nil; b = b.parent {
		if b == on {
			return true
		}
	}
	return false
}

// childOf returns a child of a block, nil if it has none. It prefers one that another block stands on.
func (l *truth) childOf(parent, preferred *truthBlock) *truthBlock {
	l.mu.Lock()
	defer l.mu.Unlock()
	var next []*truthBlock
	for _, b := range l.blocks {
		if b.parent == parent {
			next = append(next, b)
		}
		if b.parent == parent && preferred.stands(b) && l.r.IntN(10) > 0 {
			return b
		}
	}
	if len(next) == 0 {
		return nil
	}
	return next[l.r.IntN(len(next))]
}

// finalize has one more block be final at the node, if there is one. Now and then it orphans blocks that were confirmed.
func (l *truth) finalize(confirmed *truthBlock) {
	if next := l.childOf(l.node, confirmed); next != nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.node = next
	}
}

// Fetch answers as of the newest final block or, as nodes behind a balancer do, one before.
func (l *truth) Fetch(ctx context.Context, keys []ledger.Pubkey, _ ledger.Commitment) (*ledger.BaseState, error) {
	pause := func() {
		l.mu.Lock()
		wait := time.Duration(l.r.IntN(600)) * time.Millisecond
		l.mu.Unlock()
		select {
		case <-time.After(wait):
		case <-ctx.Done():
		}
	}
	pause()
	l.mu.Lock()
	at := l.node
	for l.r.IntN(3) == 0 && at.parent != nil {
		at = at.parent
	}
	failed := l.down || l.r.IntN(10) == 0
	base := &ledger.BaseState{Slot: at.Slot}
	for _, k := range keys {
		base.Accounts = append(base.Accounts, owned(k, at.state[k], ownerFor(at.state[k])))
	}
	l.mu.Unlock()
	pause()
	if failed {
		return nil, &ledger.UpstreamError{}
	}
	return base, nil
}

func (l *truth) stateAt(h ledger.Hash) map[ledger.Pubkey]ledger.Lamports {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, b := range l.blocks {
		if b.Blockhash == h {
			return b.state
		}
	}
	return nil
}

// checkAnswer holds an answer against the state of the very block that it says it is from. It
// returns whether there was one.
func (l *truth) checkAnswer(t *testing.T, q ledger.Query, k ledger.Pubkey, r reply) bool {
	t.Helper()
	if errors.Is(r.err, ledger.ErrUnavailable) {
		return false
	}
	tip := r.view.Tip()
	if why, _ := absence(r.err); l.filter != nil && why.Absence == ledger.AccountNotIndexed {
		// An account that is not of the wanted program any more may be called so at every level.
		if want := l.stateAt(tip.Hash)[k]; want != 0 && q.Commitment == ledger.Processed && l.filter.ListsOwner(ownerFor(want)) {
			t.Errorf("%v of slot %d is not indexed, and wanted", k, tip.Slot)
		}
		return true
	}
	if want := l.stateAt(tip.Hash)[k]; r.err == nil && r.account.Lamports != want ||
		r.err != nil && (!errors.Is(r.err, ledger.ErrNotFound) || want != 0) {
		t.Errorf("%v at %v: %d lamports, err %v; the block at slot %d has %d", k, q.Commitment, r.account.Lamports, r.err, tip.Slot, want)
	}
	return true
}

// filledRun is a node that follows a truth and is asked all the time.
type filledRun struct {
	*subject
	t                    *testing.T
	l                    *truth
	r                    *rand.Rand
	disk                 *vfstest.Memory
	confirmed, finalized *truthBlock // as the node here was told
	asking               sync.WaitGroup
	mu                   sync.Mutex
	answered, refused    int
}

func (f *filledRun) start() {
	f.t.Helper()
	c := onDisk(f.t, f.disk, Config{Shards: 1 + f.r.IntN(4), SnapshotInterval: 3 * time.Second, Filter: f.l.filter})
	c.Fetcher = f.l
	f.subject = startNode(f.t, partial(), c)
	synctest.Wait()
	for _, b := range f.l.blocks { // what is known already is shown again, which changes nothing
		if b == f.l.blocks[0] || b.stands(f.finalized) {
			f.send(b.Block)
		}
	}
	f.send(status(f.confirmed.Block, ledger.StatusConfirmed))
}

// restart cuts the power.
func (f *filledRun) restart() {
	disk := f.disk.Crash(f.r.Float64(), f.r.Uint64())
	f.mustStop()
	f.asking.Wait()
	f.disk = disk
	f.start()
}

func (f *filledRun) question() {
	q, k, n := at(levels[f.r.IntN(3)]), key(f.r.IntN(truthKeys)), f.subject
	f.asking.Go(func() {
		r := <-n.ask(q, k)
		ok := f.l.checkAnswer(f.t, q, k, r)
		f.mu.Lock()
		defer f.mu.Unlock()
		if ok {
			f.answered++
		} else {
			f.refused++
		}
	})
}

func (f *filledRun) step() {
	switch f.r.IntN(20) {
	case 0, 1, 2, 3, 4: // a block on a tip, or beside it
		parents := []*truthBlock{}
		for _, b := range f.l.blocks[max(0, len(f.l.blocks)-5):] {
			if b.stands(f.confirmed) {
				parents = append(parents, b)
			}
		}
		parent := f.confirmed
		if len(parents) > 0 {
			parent = parents[max(f.r.IntN(len(parents)), f.r.IntN(len(parents)))]
		}
		f.send(f.l.grow(parent).Block)
	case 5, 6:
		if b := f.l.childOf(f.confirmed, f.l.node); b != nil {
			f.confirmed = b
			f.send(status(b.Block, ledger.StatusConfirmed))
		}
	case 7:
		f.l.finalize(f.confirmed)
		f.l.finalize(f.confirmed)
	case 8, 9: // the stream tells it later
		for b := f.l.node; b != f.finalized; b = b.parent {
			if b.parent == f.finalized {
				f.finalized = b
				if !f.confirmed.stands(b) {
					f.confirmed = b
				}
				f.send(status(b.Block, ledger.StatusFinalized))
				break
			}
		}
	case 10:
		time.Sleep(time.Duration(f.r.IntN(3000)) * time.Millisecond)
	case 11:
		if f.r.IntN(10) == 0 {
			f.restart()
		}
	default:
		f.question()
		time.Sleep(time.Duration(f.r.IntN(100)) * time.Millisecond)
	}
}

// TestFilledAnswersAreTrueAtTheirBlock asks for accounts of a ledger with forks, at every level and
// all the time, of a node that lags, answers late and fails, and with power cuts: each
// answer is what the block has that it says it is from.
func TestFilledAnswersAreTrueAtTheirBlock(t *testing.T) {
	for round := range rounds(t, 12) {
		seed := seeded(t, uint64(round+1)).Uint64()
		bubble.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 2))
			l := newTruth(rand.New(rand.NewPCG(seed, 3)))
			if round%2 == 1 {
				l.filter = ledger.NewFilter([]ledger.Pubkey{ownerFor(100)}, nil)
			}
			f := &filledRun{t: t, l: l, r: r, disk: vfstest.NewMemory(), confirmed: l.blocks[0], finalized: l.blocks[0]}
			f.start()
			for n := 0; n < 600 && !t.Failed(); n++ {
				f.step()
			}
			f.asking.Wait()
			f.mustStop()
			if f.answered < 30 || f.refused == 0 {
				t.Errorf("%d answers and %d refusals: the test asks for nothing", f.answered, f.refused)
			}
		})
		if t.Failed() {
			return
		}
	}
}
