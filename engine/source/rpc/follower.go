package rpc

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/wait"
	"ledgerd/engine/source/upstream"
)

const (
	// rootSearch is how far below the newest slot the first block is looked for.
	rootSearch = 64
	// patience is how many times a block is asked for before health is told that it is stuck.
	patience = 4
)

// follower goes along the chain of one node and emits it. It belongs to one goroutine.
type follower struct {
	config *Config
	client *client
	stats  *upstream.Stats
	learn  *learner
	emit   ledger.Emit
	final  *atomic.Uint64 // the newest slot that was emitted as final

	rootless bool             // nothing is held: any block may be the first
	upTo     ledger.Slot      // the last slot to emit, 0 for none
	chain    []ledger.BlockID // what was emitted since the newest block known final, that one first

	pause    wait.Backoff
	failures int   // how often in a row anything did not work
	unshown  int   // how often one that may be the first of all was listed and not shown
	why      error // why the last of these did not work

	nextFinality time.Time
	nextHead     time.Time
}

// newFollower returns a follower that begins with what builds on a block that is held, or with any block. The first of
// all is looked for with each step, as the node may be wrong once about what is its newest.
func (s *Source) newFollower(from *ledger.ResumePoint, emit ledger.Emit, mode Accounts) *follower {
	f := &follower{
		config: &s.config, client: s.client, stats: &s.stats, emit: emit, final: &s.final,
		rootless: from == nil, chain: []ledger.BlockID{{}}, learn: newLearner(s.client, &s.config, mode),
		pause: wait.Backoff{Min: poll / 2, Max: 10 * time.Second, Random: s.config.Random},
	}
	switch {
	case from != nil:
		f.chain[0] = ledger.BlockID{Slot: from.Slot, Hash: from.Blockhash}
		f.stats.Resumed(from.Slot)
	case f.config.From.Known:
		f.chain[0].Slot = max(f.config.From.Value, 1) - 1
	}
	return f
}

// last returns the newest block emitted, or where the follower began.
func (f *follower) last() ledger.BlockID { return f.chain[len(f.chain)-1] }

// rest waits after something did not work. If it goes on not to work health is told why, and the log, once.
func (f *follower) rest(ctx context.Context, why error) error {
	f.why = why
	if f.failures++; f.failures >= patience {
		f.stats.Halted(causes[causeOf(why)].kind)
		if f.failures == patience {
			f.config.Logger.Warn("the node cannot be followed now", "after_slot", uint64(f.last().Slot), "error", why)
		}
	}
	return f.pause.Wait(ctx)
}

// works notes that a block came, or that there is none to come yet.
func (f *follower) works() {
	if f.failures >= patience {
		f.stats.Recovered()
		f.config.Logger.Info("the node is followed again", "slot", uint64(f.last().Slot))
	}
	f.failures, f.why = 0, nil
	f.pause.Reset()
}

// walk emits the blocks of the slots listed, in the order of the chain, and those between that
// the list left out. It reports whether it came to the end; if not, the list is to be made again.
func (f *follower) walk(ctx context.Context, slots []ledger.Slot, toNewest bool) (done bool, err error) {
	q := &queue{client: f.client, slots: slots}
	q.ctx, q.cancel = context.WithCancel(ctx)
	defer q.stop()
	for {
		p := q.front()
		if p == nil {
			return true, nil
		}
		b, err := p.block()
		switch {
		case ctx.Err() != nil:
			return false, ctx.Err()
		case err != nil && causeOf(err).isAbsence() && !p.named && !q.only() && (!f.rootless || f.unshown >= patience-1):
			q.drop() // a later block tells whether it is missing, by its parent link, unless it is to be the first of all
		case err != nil:
			if f.rootless && causeOf(err).isAbsence() {
				f.unshown++
			}
			return false, f.miss(ctx, p.slot, err)
		case f.follows(b) && !f.rootless && !b.PreviousBlockhash.Known: // then it builds on what the node shows in its parent's place
			hash, err := f.client.hash(ctx, b.ParentSlot, ledger.Confirmed)
			if err != nil {
				return false, f.miss(ctx, b.Slot, err)
			}
			b.PreviousBlockhash = ledger.Some(hash)
		case f.follows(b):
			if f.rootless && b.Slot > slots[0] {
				f.config.Logger.Warn("the node lists blocks that it does not have: what is followed begins later", "listed_slot", uint64(slots[0]), "slot", uint64(b.Slot))
			}
			if err := f.put(ctx, b, b.Slot == f.upTo || f.upTo == 0 && toNewest && q.only()); err != nil {
				return false, err
			}
			q.drop()
			rewound, err := f.finality(ctx)
			if rewound || err != nil {
				return false, err
			}
		case b.ParentSlot > f.last().Slot:
			if !q.first(b.ParentSlot) {
				return false, f.miss(ctx, b.Slot, f.misplaced(b))
			}
		default:
			return false, f.dispute(ctx, b)
		}
	}
}

// follows reports whether a block is the next one, as far as it says on which hash it builds.
func (f *follower) follows(b *ledger.Block) bool {
	last := f.last()
	return f.rootless || b.ParentSlot == last.Slot && (!b.PreviousBlockhash.Known || b.PreviousBlockhash.Value == last.Hash)
}

// put emits the next block, after it was looked what it does not show, and what else was found out.
func (f *follower) put(ctx context.Context, b *ledger.Block, asks bool) (err error) {
	f.learn.note(b)
	var later []*ledger.BaseState
	if asks {
		if later, err = f.ask(ctx, b); err != nil {
			return err
		}
	}
	f.stats.Sealed(b.Slot, 1)
	if err := f.emit(ctx, b); err != nil {
		return err
	}
	f.stats.GapRepaired()
	if f.rootless {
		f.rootless, f.chain = false, f.chain[:0]
	}
	f.chain = append(f.chain, ledger.BlockID{Slot: b.Slot, Hash: b.Blockhash})
	f.works()
	for _, state := range later {
		if err := f.emit(ctx, state); err != nil {
			return err
		}
	}
	return nil
}

// ask has the learner ask. Who fills a gap has no later block to ask again at: then everything
// has to be answered, or the filling is given up.
func (f *follower) ask(ctx context.Context, b *ledger.Block) (later []*ledger.BaseState, err error) {
	for tries := 0; ; {
		some, err := f.learn.ask(ctx, b)
		later = append(later, some...)
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case f.upTo == 0 || err == nil && len(f.learn.wanted) == 0:
			return later, nil
		case err == nil:
			tries = 0
			continue
		}
		if tries++; tries > fillTries {
			return nil, fmt.Errorf("cannot fill slot %d: it is not to be had what its accounts are: %w", b.Slot, err)
		}
		if err := f.rest(ctx, err); err != nil {
			return nil, err
		}
	}
}

// miss waits before the next try to get the block of a slot. If that lasts it is told as a gap: at the tip a node may list
// what it cannot answer for a moment.
func (f *follower) miss(ctx context.Context, slot ledger.Slot, why error) error {
	cause := causeOf(why)
	if cause.lost() || cause == rateLimited { // that says nothing of the block
		return f.rest(ctx, why)
	}
	if cause == absent && f.failures > 0 && f.firstKept(ctx) > slot {
		cause = pruned
		why = &callError{method: "getBlock", cause: cause}
	}
	if f.failures+1 >= patience && !f.rootless {
		f.stats.GapFound(f.last().Slot, slot)
		f.stats.GapStuck(causes[cause].kind)
	}
	return f.rest(ctx, why)
}

// misplaced is the error of a block that does not build on those before it.
func (f *follower) misplaced(b *ledger.Block) error {
	return &callError{method: "getBlock", cause: wrongParent, detail: fmt.Errorf("block %d, after block %d", b.Slot, f.last().Slot)}
}

// dispute decides what it means that a block builds on none that was emitted last. Where the node still shows that one the block is
// wrong. Else what was emitted is: then the follower goes back to what is final. Where that is in dispute nothing comes until the
// node shows it again: it has another ledger, or several nodes behind a balancer contradict each other.
func (f *follower) dispute(ctx context.Context, b *ledger.Block) error {
	f.stats.Failed(upstream.WrongParent)
	why, last := f.misplaced(b), f.last()
	shown, known := f.shown(ctx, last.Slot, ledger.Confirmed)
	if known && shown != ledger.Some(last.Hash) && len(f.chain) > 1 {
		f.rewind()
		return f.rest(ctx, why)
	}
	return f.miss(ctx, b.Slot, why)
}

// rewind goes back to the newest final block: the node has others in the place of those after it.
func (f *follower) rewind() {
	f.stats.Failed(upstream.Equivocation)
	f.config.Logger.Warn("the node took confirmed blocks back", "from_slot", uint64(f.last().Slot), "to_slot", uint64(f.chain[0].Slot))
	f.chain = f.chain[:1]
	f.learn.forget()
}
