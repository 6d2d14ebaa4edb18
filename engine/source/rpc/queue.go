package rpc

import (
	"context"
	"slices"
	"sync"

	"ledgerd/engine/ledger"
)

// maxDetour bounds the blocks that are fetched because others name them as parents, though the
// node did not list them.
const maxDetour = 64

// fetching is a block that is on its way.
type fetching struct {
	slot  ledger.Slot
	named bool          // another block has it as its parent
	done  chan struct{} // closed when read and err are set
	read  *ledger.Block
	err   error
}

// block waits for it, as long as the queue goes on.
func (p *fetching) block() (*ledger.Block, error) {
	<-p.done
	return p.read, p.err
}

// queue fetches blocks, several at once, and hands them over in the order of slots. It belongs to one
// goroutine, which must stop it.
type queue struct {
	client *client
	list   []*fetching
	slots  []ledger.Slot // not begun
	ctx    context.Context
	cancel context.CancelFunc
	calls  sync.WaitGroup
}

// ahead returns how many blocks are fetched at once: one call is left for the rest.
func (q *queue) ahead() int { return max(q.client.config.Parallel-1, 1) }

// stop ends all calls and waits for them.
func (q *queue) stop() {
	q.cancel()
	q.calls.Wait()
}

// front returns the next block, nil if there is none.
func (q *queue) front() *fetching {
	for len(q.slots) > 0 && len(q.list) < q.ahead() {
		q.list = append(q.list, q.begin(q.slots[0], false))
		q.slots = q.slots[1:]
	}
	if len(q.list) == 0 {
		return nil
	}
	return q.list[0]
}

func (q *queue) begin(slot ledger.Slot, named bool) *fetching {
	p := &fetching{slot: slot, named: named, done: make(chan struct{})}
	q.calls.Go(func() {
		defer close(p.done)
		p.read, p.err = q.client.block(q.ctx, slot)
	})
	return p
}

// drop leaves the front out.
func (q *queue) drop() { q.list = slices.Delete(q.list, 0, 1) }

// first puts the parent of a block in front. It reports whether there is room.
func (q *queue) first(slot ledger.Slot) bool {
	if len(q.list) >= q.ahead()+maxDetour {
		return false
	}
	q.list = slices.Insert(q.list, 0, q.begin(slot, true))
	return true
}

// only reports whether the front is the last of all.
func (q *queue) only() bool { return len(q.list) == 1 && len(q.slots) == 0 }
