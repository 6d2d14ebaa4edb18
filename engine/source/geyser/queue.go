package geyser

import (
	"context"
	"sync"
	"unsafe"

	"ledgerd/engine/source/yellowstone"
)

const (
	updateBytes = int(unsafe.Sizeof(yellowstone.Update{}))
	// keptUpdates is how much room for updates is used again; a burst's goes to the garbage collector.
	keptUpdates = 4096
)

// queue hands updates from the goroutine that reads the socket to the one that assembles blocks. It
// holds what came while blocks were emitted; when it is full the socket waits, and in the end the
// node will part with us.
type queue struct {
	limit int // in bytes

	mu      sync.Mutex
	updates []yellowstone.Update
	sizes   int                  // of updates, in bytes
	bytes   int                  // of those and of what was taken and is not done
	spare   []yellowstone.Update // room to use again

	ready chan struct{} // holds a token when something may be there
	room  chan struct{} // holds a token when there may be room again
}

func newQueue(limit int) *queue {
	return &queue{limit: limit, ready: make(chan struct{}, 1), room: make(chan struct{}, 1)}
}

// put adds an update that took so many bytes on the wire, after there is room, or returns
// ctx's error.
func (q *queue) put(ctx context.Context, u *yellowstone.Update, wire int) error {
	size := updateBytes + wire
	q.mu.Lock()
	for q.bytes > 0 && q.bytes+size > q.limit {
		q.mu.Unlock()
		select {
		case <-q.room:
		case <-ctx.Done():
			return ctx.Err()
		}
		q.mu.Lock()
	}
	first := len(q.updates) == 0
	q.updates = append(q.updates, *u)
	q.sizes += size
	q.bytes += size
	q.mu.Unlock()
	if first {
		token(q.ready)
	}
	return nil
}

// take returns all that wait, and their size; done must follow.
func (q *queue) take() ([]yellowstone.Update, int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	updates, size := q.updates, q.sizes
	q.updates, q.sizes, q.spare = q.spare, 0, nil
	return updates, size
}

// done gives back what take returned.
func (q *queue) done(updates []yellowstone.Update, size int) {
	clear(updates)
	q.mu.Lock()
	q.bytes -= size
	if cap(updates) <= keptUpdates {
		q.spare = updates[:0]
	}
	q.mu.Unlock()
	token(q.room)
}

// token puts a token where none is.
func token(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
