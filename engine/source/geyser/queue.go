package geyser

import (
	"context"
	"sync"
	"unsafe"

	"golang.org/x/sync/semaphore"

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
	room  *semaphore.Weighted // in bytes; updates that wait, and those taken and not done, have some
	ready chan struct{}       // holds a token when something may be there

	mu      sync.Mutex
	updates []yellowstone.Update
	bytes   int64                // of updates
	spare   []yellowstone.Update // room to use again
}

func newQueue(limit int) *queue {
	return &queue{room: semaphore.NewWeighted(int64(limit)), ready: make(chan struct{}, 1)}
}

// put adds an update that took so many bytes on the wire, after there is room, or returns
// ctx's error.
func (q *queue) put(ctx context.Context, u *yellowstone.Update, wire int) error {
	size := int64(updateBytes + wire)
	if err := q.room.Acquire(ctx, size); err != nil {
		return err
	}
	q.mu.Lock()
	q.updates = append(q.updates, *u)
	q.bytes += size
	q.mu.Unlock()
	token(q.ready)
	return nil
}

// take returns all that wait, and their size; done must follow.
func (q *queue) take() ([]yellowstone.Update, int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	updates, bytes := q.updates, q.bytes
	q.updates, q.bytes, q.spare = q.spare, 0, nil
	return updates, bytes
}

// done gives back what take returned.
func (q *queue) done(updates []yellowstone.Update, bytes int64) {
	q.room.Release(bytes)
	if cap(updates) > keptUpdates {
		return
	}
	clear(updates)
	q.mu.Lock()
	q.spare = updates[:0]
	q.mu.Unlock()
}

// token puts a token where none is.
func token(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
