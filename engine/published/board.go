package published

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"ledgerd/engine/ledger"
)

// Board shows the newest head to queries.
type Board struct {
	Ready     atomic.Bool // a block is visible, or nothing comes any more: queries are answered from the state as it is
	Recovered atomic.Bool // recovery is over, and the block it led to, if any, is visible

	onPublish func(*ledger.Publication) // nil: not called

	blocks []block   // from the newest finalized one on; touched by Publish alone
	first  time.Time // of the first publication, at which every block became visible that is not in blocks

	newest    atomic.Pointer[ledger.Head]
	lastBlock ledger.Guarded[time.Time] // when a block became visible last, zero before the first
	fenced    atomic.Pointer[string]    // why no query is answered any more; nil while they are
	fence     chan struct{}             // closed then

	mu      sync.Mutex
	changed chan struct{} // closed and replaced at each publication
}

// block is when a block became visible.
type block struct {
	slot  ledger.Slot
	hash  ledger.Hash
	since time.Time
}

// NewBoard returns a board without a head. It calls onPublish, unless that is nil, with each publication in order. onPublish must
// not block.
func NewBoard(onPublish func(*ledger.Publication)) *Board {
	return &Board{onPublish: onPublish, fence: make(chan struct{}), changed: make(chan struct{})}
}

// Publish makes the head of a publication the newest, wakes waiting queries, and passes the publication to onPublish.
func (b *Board) Publish(p *ledger.Publication) {
	b.date(p, time.Now())
	b.newest.Store(p.Head)
	b.wake()
	b.Tell(p)
	if p.Head.HasBlock { // last: a client that waits for readiness may subscribe at once
		b.Ready.Store(true)
	}
}

// date notes when the blocks of a publication became visible, and fills in Since of its head. It forgets blocks below the
// finalized one.
func (b *Board) date(p *ledger.Publication, now time.Time) {
	if b.first.IsZero() {
		b.first = now
	}
	for _, r := range p.Records {
		if r.Kind == ledger.BlockRecord {
			b.blocks = append(b.blocks, block{r.Slot, r.Hash, now})
			b.lastBlock.Set(now)
		}
	}
	finalized := p.Head.Tip(ledger.Finalized).Slot
	b.blocks = slices.DeleteFunc(b.blocks, func(known block) bool { return known.slot < finalized })
	for c := range p.Head.Tips {
		p.Head.Since[c] = b.first
		for _, known := range b.blocks {
			if known.hash == p.Head.Tips[c].Hash {
				p.Head.Since[c] = known.since
			}
		}
	}
}

// Tell passes a publication to onPublish whose head does not become the newest: the levels of a replay were perhaps never
// published together.
func (b *Board) Tell(p *ledger.Publication) {
	if b.onPublish != nil {
		b.onPublish(p)
	}
}

// wake wakes all goroutines that wait for a publication.
func (b *Board) wake() {
	b.mu.Lock()
	defer b.mu.Unlock()
	close(b.changed)
	b.changed = make(chan struct{})
}

// Next returns a channel that is closed at the next publication, and when the node fences itself off.
func (b *Board) Next() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.changed
}

// Await calls done at once and after each publication until it returns true. It returns false if expired delivers a value, or is
// closed, before that.
func Await[T any](b *Board, expired <-chan T, done func() bool) bool {
	for {
		changed := b.Next() // before done reads the head, so that no publication is missed
		if done() {
			return true
		}
		select {
		case <-changed:
		case <-expired:
			return false
		}
	}
}

// Head returns the newest published head, nil before the first and after the node fenced itself off.
func (b *Board) Head() *ledger.Head {
	if b.fenced.Load() != nil {
		return nil
	}
	return b.newest.Load()
}

// Answerable returns the newest head, with an error while no query can be answered from it.
func (b *Board) Answerable() (*ledger.Head, error) {
	if err := b.FenceError(); err != nil {
		return nil, err
	}
	ready, recovered := b.Ready.Load(), b.Recovered.Load() // loaded before head, so the head that they announce is visible
	h := b.newest.Load()
	switch {
	case ready || h != nil && h.HasSlot():
		return h, nil
	case recovered && h == nil:
		return nil, ledger.ErrNoBlock
	}
	return h, ledger.ErrRecovering // the state may have only a part of the base state
}

// LastBlock returns when a block of this process became visible last, the zero time before the first.
func (b *Board) LastBlock() time.Time { return b.lastBlock.Load() }

// Fence stops all answers for good and reports whether it is the first call, whose reason is kept. The state of the node is
// not the one that the log states.
func (b *Board) Fence(why string) bool {
	if !b.fenced.CompareAndSwap(nil, &why) {
		return false
	}
	close(b.fence)
	b.wake()
	return true
}

// FenceReason returns why the node answers nothing any more, "" while it answers.
func (b *Board) FenceReason() string {
	if why := b.fenced.Load(); why != nil {
		return *why
	}
	return ""
}

// Fenced returns a channel that is closed when the node fences itself off.
func (b *Board) Fenced() <-chan struct{} { return b.fence }

// FenceError returns the error of all queries to a node that fenced itself off, nil if it did not.
func (b *Board) FenceError() error {
	if why := b.FenceReason(); why != "" {
		return fmt.Errorf("%s: %w", why, ledger.ErrUnavailable)
	}
	return nil
}
