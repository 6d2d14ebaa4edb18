package bench

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"runtime"
	"sync"
	"syscall"
	"time"
)

// loadConfig says what a load asks of whom. Address, Connections, Script and Frame are
// required.
type loadConfig struct {
	Address     netip.AddrPort
	Locals      []netip.Addr // addresses to come from, in turns; none: any
	Connections int
	Depth       int     // requests on the way on each connection; 0: 1
	Fresh       bool    // a connection for each request
	Rate        float64 // requests a second, all connections together; 0: the next when one is answered
	Script      *script
	Frame       framing
	Polite      bool // ask no more once the server has answered 429
	// Check says whether an answer is right; one of so many is looked at. nil: none is.
	Check func(a restAsk, status int, head, body []byte) error
}

// loadCounts is what came of the requests of a phase, all of which are over.
type loadCounts struct {
	Latency  *Histogram // of all answers, from when the request was due
	Statuses [1000]int  // answers by status
	Bytes    int64      // of all answers
	Failed   int        // requests without an answer: the connection broke, or it took too long
	Why      error      // the first of those failed
	Late     int        // requests that found every connection busy when they were due
	Unsent   int        // requests that were due, and that there was no connection for until it was too late
	Checked  int        // answers that were looked at
	Took     time.Duration
}

func newLoadCounts() *loadCounts { return &loadCounts{Latency: NewHistogram()} }

// answered returns how many answers came.
func (c *loadCounts) answered() (all int) {
	for _, n := range c.Statuses {
		all += n
	}
	return all
}

// fail counts requests that went unanswered.
func (c *loadCounts) fail(requests int, why error) {
	c.Failed += requests
	if c.Why == nil {
		c.Why = why
	}
}

// perSecond returns how many answers came in a second.
func (c *loadCounts) perSecond() float64 { return float64(c.answered()) / c.Took.Seconds() }

func (c *loadCounts) merge(other *loadCounts) {
	c.Latency.Merge(other.Latency)
	for i, n := range other.Statuses {
		c.Statuses[i] += n
	}
	c.Bytes += other.Bytes
	c.Failed += other.Failed
	if c.Why == nil {
		c.Why = other.Why
	}
	c.Late += other.Late
	c.Unsent += other.Unsent
	c.Checked += other.Checked
	c.Took = max(c.Took, other.Took)
}

// load asks a server over many connections. A thread asks on all of its connections, and
// waits for all of them at once: a goroutine for each takes half as much time again, and what
// the load takes is missing from the server beside it.
//
// Without a rate each connection asks again when it is answered, which finds out how much a
// server can do. With one, each request is due at a time of its own, whatever the answers
// take, and its latency counts from then.
type load struct {
	loops []*loadLoop
}

// loadThreads is how many threads ask: one is more than a server on as many processors again
// can answer.
func loadThreads(connections int) int { return min(max(1, runtime.NumCPU()/4), connections) }

// newLoad connects.
func newLoad(ctx context.Context, c loadConfig) (*load, error) {
	l := new(load)
	threads := loadThreads(c.Connections)
	for i := range threads {
		share := c
		share.Connections = (c.Connections + i) / threads
		share.Rate = c.Rate / float64(threads)
		share.Depth = max(1, c.Depth)
		loop, err := newLoadLoop(share, i*len(c.Script.ends)/threads)
		if err != nil {
			l.close()
			return nil, err
		}
		l.loops = append(l.loops, loop)
	}
	if c.Fresh {
		return l, nil
	}
	if _, err := l.each(func(loop *loadLoop) (*loadCounts, error) { return nil, loop.connect(ctx) }); err != nil {
		l.close()
		return nil, fmt.Errorf("cannot connect: %w", err)
	}
	return l, nil
}

// phase asks for so long, waits for what is still to be answered, and returns what came of it. What
// was due at a rate and could not be asked is asked for a moment longer, then counted as unsent.
func (l *load) phase(ctx context.Context, length time.Duration) (*loadCounts, error) {
	return l.each(func(loop *loadLoop) (*loadCounts, error) { return loop.phase(ctx, length) })
}

// run asks until ctx ends, and waits for what is still to be answered. What comes of it is taken
// meanwhile and afterwards.
func (l *load) run(ctx context.Context) error {
	const forever = 1 << 62
	for _, loop := range l.loops {
		loop.enough.Store(false)
	}
	stop := context.AfterFunc(ctx, func() {
		for _, loop := range l.loops {
			loop.enough.Store(true)
		}
	})
	defer stop()
	_, err := l.each(func(loop *loadLoop) (*loadCounts, error) {
		_, err := loop.phase(context.WithoutCancel(ctx), forever)
		return nil, err
	})
	return err
}

// take returns what was counted since the last time. Any goroutine may call it while the load
// runs; Took is not known then.
func (l *load) take() *loadCounts {
	all := newLoadCounts()
	for _, loop := range l.loops {
		all.merge(loop.handOver())
	}
	return all
}

// each has all threads do something.
func (l *load) each(do func(loop *loadLoop) (*loadCounts, error)) (*loadCounts, error) {
	counts := make([]*loadCounts, len(l.loops))
	errs := make([]error, len(l.loops))
	var busy sync.WaitGroup
	for i, loop := range l.loops {
		busy.Go(func() {
			runtime.LockOSThread() // it waits in the kernel
			defer runtime.UnlockOSThread()
			counts[i], errs[i] = do(loop)
		})
	}
	busy.Wait()
	for _, other := range counts[1:] {
		if other != nil && counts[0] != nil {
			counts[0].merge(other)
		}
	}
	return counts[0], errors.Join(errs...)
}

// close ends all connections.
func (l *load) close() {
	for _, loop := range l.loops {
		loop.close()
	}
}

// sockaddr is an address as the kernel takes it.
func sockaddr(a netip.AddrPort) syscall.Sockaddr {
	if a.Addr().Is4() {
		return &syscall.SockaddrInet4{Port: int(a.Port()), Addr: a.Addr().As4()}
	}
	return &syscall.SockaddrInet6{Port: int(a.Port()), Addr: a.Addr().As16()}
}
