package snapshot

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/klauspost/compress/zstd"

	"ledgerd/engine/ledger"
)

// Asker says who asks an archive, and until when an answer is of use.
type Asker struct {
	Client   netip.Addr // its turns are counted; zero is one client, too
	Deadline time.Time
}

// errLate says that a reader got no turn, or was not done, before its deadline.
var errLate = fmt.Errorf("history on disk is not read before the deadline: %w", ledger.ErrUnavailable)

// errCrowded says that too many wait for a turn already.
var errCrowded = fmt.Errorf("too many questions wait for history on disk: %w", ledger.ErrUnavailable)

// lane is where questions of a kind wait for a turn to read. Clients share the turns: one that is free goes to the client that has the fewest, and of these
// to the one that was given none for longest. A single client may have all of them. Where too many wait, the client of which the most are there gives way.
type lane struct {
	mu      sync.Mutex
	free    []*zstd.Decoder    // one for each turn that nobody has; nobody waits then
	waiting []*waiter          // oldest first
	reading []netip.Addr       // the clients of the turns that are had
	given   int                // turns, until now
	last    map[netip.Addr]int // of the clients that read or wait: the number of the turn that they were given last
}

// waiter is a question that waits for a turn.
type waiter struct {
	client netip.Addr
	turn   chan *zstd.Decoder // has room for one; closed if it gives way
}

// open gives so many a turn at a time.
func (l *lane) open(turns int) error {
	l.last = make(map[netip.Addr]int)
	for range turns {
		z, err := newDecoder()
		if err != nil {
			return err
		}
		l.free = append(l.free, z)
	}
	return nil
}

// take waits for a turn, and returns the decompressor that goes with it and has to be given back.
func (l *lane) take(by Asker) (*zstd.Decoder, error) {
	w, err := l.enter(by.Client)
	if err != nil {
		return nil, err
	}
	timer := time.NewTimer(time.Until(by.Deadline))
	defer timer.Stop()
	select {
	case z := <-w.turn:
		return orCrowded(z)
	case <-timer.C:
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if i := slices.Index(l.waiting, w); i >= 0 {
		l.removeLocked(i)
		l.forgetLocked(w.client)
		return nil, errLate
	}
	return orCrowded(<-w.turn) // it was given meanwhile
}

// orCrowded returns what a waiter was given: the turn, or errCrowded if it gave way.
func orCrowded(z *zstd.Decoder) (*zstd.Decoder, error) {
	if z == nil {
		return nil, errCrowded
	}
	return z, nil
}

// enter lets a client wait for a turn, which it has at once if one is free.
func (l *lane) enter(client netip.Addr) (*waiter, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	w := &waiter{client, make(chan *zstd.Decoder, 1)}
	if n := len(l.free); n > 0 {
		l.giveLocked(w, l.free[n-1])
		l.free = l.free[:n-1]
		return w, nil
	}
	if len(l.waiting)+len(l.reading) >= mostWaiting {
		most := 0
		for i, other := range l.waiting { // of the client that has the most, the newest
			if l.countLocked(other.client) >= l.countLocked(l.waiting[most].client) {
				most = i
			}
		}
		if l.countLocked(l.waiting[most].client) <= l.countLocked(client)+1 {
			return nil, errCrowded
		}
		close(l.removeLocked(most).turn) // its client has others
	}
	l.waiting = append(l.waiting, w)
	return w, nil
}

// countLocked returns how many questions of a client read or wait.
func (l *lane) countLocked(client netip.Addr) (n int) {
	for _, w := range l.waiting {
		if w.client == client {
			n++
		}
	}
	return n + l.turnsLocked(client)
}

// turnsLocked returns how many turns a client has.
func (l *lane) turnsLocked(client netip.Addr) (n int) {
	for _, c := range l.reading {
		if c == client {
			n++
		}
	}
	return n
}

// giveLocked gives a turn to a waiter that is in no list.
func (l *lane) giveLocked(w *waiter, z *zstd.Decoder) {
	l.given++
	l.reading, l.last[w.client] = append(l.reading, w.client), l.given
	w.turn <- z
}

// giveBack ends a turn of a client, and gives it to the next.
func (l *lane) giveBack(client netip.Addr, z *zstd.Decoder) {
	l.mu.Lock()
	defer l.mu.Unlock()
	at := slices.Index(l.reading, client)
	l.reading = slices.Delete(l.reading, at, at+1)
	l.forgetLocked(client)
	if len(l.waiting) == 0 {
		l.free = append(l.free, z)
		return
	}
	next := 0
	for i, w := range l.waiting {
		first := l.waiting[next].client
		if cmp.Or(cmp.Compare(l.turnsLocked(w.client), l.turnsLocked(first)), cmp.Compare(l.last[w.client], l.last[first])) < 0 {
			next = i
		}
	}
	l.giveLocked(l.removeLocked(next), z)
}

// removeLocked returns a waiter that waits no more.
func (l *lane) removeLocked(i int) *waiter {
	w := l.waiting[i]
	l.waiting = slices.Delete(l.waiting, i, i+1)
	return w
}

// forgetLocked forgets a client of which no question is left.
func (l *lane) forgetLocked(client netip.Addr) {
	if l.countLocked(client) == 0 {
		delete(l.last, client)
	}
}
