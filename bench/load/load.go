// Package load asks an HTTP server over many connections and counts what comes of it.
//
// # Nouns
//
// A [Load] sends the requests of a [Script], over and over, to one address. In a closed loop (no rate)
// each connection asks again when it is answered, which shows how much a server can do. In an
// open loop each request is due at a time of its own, whatever the responses take, and its
// latency counts from then: a server that stalls is late for everything that was due meanwhile
// (no coordinated omission).
//
// [Counts] are what came of the requests: every request that was due was sent or stayed unsent,
// and every request that was sent was answered or failed. Overload, refusals and broken connections
// are counts, not errors.
//
// A [Node] is a running ledgerd as a user names it: its limits, and the keys that it tells of.
//
// # Rules
//
// A load has one or more threads, each with connections of its own, which it waits for with epoll: a
// goroutine for each connection takes half as much time again, which the server beside it lacks.
// Connections are opened when they are first needed and stay open between phases. One phase runs
// at a time; Take may be called by any goroutine meanwhile.
package load

import (
	"context"
	"fmt"
	"net/netip"
	"runtime"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"
)

// Config says what a load asks of whom. Address, Connections and Script are required.
type Config struct {
	Address     netip.AddrPort
	Clients     int // loopback addresses to come from, in turns; 0: any
	Connections int
	Depth       int     // requests in flight on each connection; 0: 1
	Rate        float64 // requests a second, all connections together; 0: closed loop
	Script      Script
	Frame       Framing // nil: HTTP
	StopAt429   bool    // a phase sends nothing more after the first 429
	// Verify says what is wrong with the response to a request of the script. One response of 256
	// is verified, if it fits into one read. nil: none is.
	Verify func(request, status int, head, body []byte) error
}

// Load is a set of connections to a server. Close ends them.
type Load struct {
	loops []*loop
}

// New returns a load that has not sent anything yet.
func New(c Config) (*Load, error) {
	c.Depth = max(1, c.Depth)
	if c.Frame == nil {
		c.Frame = FrameHTTP
	}
	// One thread is more than a server on as many processors again can answer.
	threads := min(max(1, runtime.NumCPU()/4), c.Connections)
	l := new(Load)
	for i := range threads {
		share := c
		share.Connections = (c.Connections + i) / threads
		share.Rate = c.Rate / float64(threads)
		epoll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
		if err != nil {
			l.Close()
			return nil, fmt.Errorf("cannot wait for connections: %w", err)
		}
		l.loops = append(l.loops, newLoop(share, epoll, i*len(c.Script)/threads))
	}
	return l, nil
}

// Phase sends requests for so long, waits up to two seconds for the last responses, and returns what
// was counted since the last Take. It ends early, without an error, when ctx ends. An error means
// that the load itself cannot work.
func (l *Load) Phase(ctx context.Context, length time.Duration) (*Counts, error) {
	var busy errgroup.Group
	for _, loop := range l.loops {
		busy.Go(func() error { return loop.phase(ctx, length) })
	}
	err := busy.Wait()
	return l.Take(), err
}

// Take returns what was counted since the last time. Unsent and Took are known only when the phase is
// over.
func (l *Load) Take() *Counts {
	all := NewCounts()
	for _, loop := range l.loops {
		loop.mu.Lock()
		all.Merge(loop.counts)
		loop.counts = NewCounts()
		loop.mu.Unlock()
	}
	return all
}

// Close closes all connections.
func (l *Load) Close() {
	for _, loop := range l.loops {
		loop.close()
	}
}
