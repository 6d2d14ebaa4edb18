package bench

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"runtime"
	"sync"
	"syscall"
	"time"
)

// pollConfig says what a poller asks. Address, Connections, Rate and Paths are required.
type pollConfig struct {
	Address     string       // host:port
	Connections int          // kept alive, and used in turns
	Rate        float64      // requests a second, all connections together
	Paths       []string     // one is chosen for each request, all equally often
	Locals      []netip.Addr // addresses to come from, in turns; none: any
}

// pollCounts is what a poller saw since it was asked last.
type pollCounts struct {
	Latency  *Histogram  // of all answers, whatever their status, from when the request was due
	Statuses map[int]int // answers by status
	Failed   int         // requests without an answer: the connection broke
	Late     int         // requests that found every connection busy when they were due
}

// answered returns how many answers of a status came.
func (c *pollCounts) answered() (all int) {
	for n := range maps.Values(c.Statuses) {
		all += n
	}
	return all
}

// poller asks a server over REST at a fixed rate, whatever the answers take: each request is
// due at a time of its own, and its latency counts from then. So a server that stalls is seen
// by all that should have been asked meanwhile, not only by those that wait.
//
// Each connection carries one request at a time. When all are busy, requests wait for one, and
// that counts as latency too.
type poller struct {
	config   pollConfig
	requests [][]byte
	conns    []*pollConn
	idle     chan *pollConn
	readers  sync.WaitGroup

	mu     sync.Mutex
	counts pollCounts
	broken error // why the first request went unanswered
}

// newPoller connects. Each connection counts at the server from here on.
func newPoller(ctx context.Context, config pollConfig) (*poller, error) {
	p := &poller{config: config, idle: make(chan *pollConn, config.Connections)}
	p.counts = newPollCounts()
	for _, path := range config.Paths {
		p.requests = append(p.requests, fmt.Appendf(nil, "GET %s HTTP/1.1\r\nHost: %s\r\n\r\n", path, config.Address))
	}
	for i := range config.Connections {
		var local netip.Addr
		if len(config.Locals) > 0 {
			local = config.Locals[i%len(config.Locals)]
		}
		c, err := dialPollConn(ctx, config.Address, local)
		if err != nil {
			p.close()
			return nil, err
		}
		p.conns = append(p.conns, c)
		p.idle <- c
	}
	return p, nil
}

func newPollCounts() pollCounts {
	return pollCounts{Latency: NewHistogram(), Statuses: make(map[int]int)}
}

// run asks until ctx ends, waits for the answers that are due and closes the connections.
func (p *poller) run(ctx context.Context) {
	for _, c := range p.conns {
		p.readers.Go(func() { p.read(c) })
	}
	p.ask(ctx)
	for range p.conns { // each comes back with its answer
		close((<-p.idle).asked)
	}
	p.readers.Wait()
	p.close()
}

func (p *poller) close() {
	for _, c := range p.conns {
		c.close()
	}
}

// ask sends each request when it is due. It keeps a thread to itself, so that the thread can
// sleep to the microsecond; the runtime's timers are as much as a millisecond late.
func (p *poller) ask(ctx context.Context) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	choice := rand.New(rand.NewPCG(1, 1))
	start := time.Now()
	for i := 0; ; i++ {
		due := start.Add(time.Duration(float64(i) / p.config.Rate * float64(time.Second)))
		if !sleepUntil(ctx, due) {
			return
		}
		var c *pollConn
		select {
		case c = <-p.idle:
		default:
			p.mu.Lock()
			p.counts.Late++
			p.mu.Unlock()
			c = <-p.idle // an answer has a deadline, so there will be one
		}
		c.ask(p.requests[choice.IntN(len(p.requests))], due)
	}
}

// sleepUntil blocks the thread; false if ctx has ended.
func sleepUntil(ctx context.Context, due time.Time) bool {
	const step = 100 * time.Millisecond // so that the end of ctx is seen
	for ctx.Err() == nil {
		left := time.Until(due)
		if left <= 0 {
			return true
		}
		pause := syscall.NsecToTimespec(min(left, step).Nanoseconds())
		_ = syscall.Nanosleep(&pause, nil) // a signal ends it early, and the loop goes on
	}
	return false
}

// read takes the answers of a connection.
func (p *poller) read(c *pollConn) {
	for due := range c.asked {
		status, err := c.answer()
		p.count(status, time.Since(due), err)
		if err != nil || c.ending {
			c.renew()
		}
		p.idle <- c
	}
}

func (p *poller) count(status int, took time.Duration, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil {
		p.counts.Failed++
		if p.broken == nil {
			p.broken = err
		}
		return
	}
	p.counts.Latency.Record(took)
	p.counts.Statuses[status]++
}

// take returns what was counted since the last time.
func (p *poller) take() pollCounts {
	p.mu.Lock()
	defer p.mu.Unlock()
	counts := p.counts
	p.counts = newPollCounts()
	return counts
}

// err returns why the first unanswered request was so, if there was one.
func (p *poller) err() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.broken
}
