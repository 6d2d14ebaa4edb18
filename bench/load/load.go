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
// # Rules
//
// Each connection has a goroutine while a phase runs, which reads responses with fasthttp. A request
// takes a load two thirds of the time that it takes a ledgerd, so a load on one processor has a
// ledgerd on another at its limit. Over HTTP/2, for proxies and other servers, net/http reads them, which takes five times as long. There
// too a connection has one request at a time: several would share its windows, and a latency would tell of the load's own queue.
//
// Connections are opened when they are first needed and stay open between phases. One phase runs at a time; Take may be called by any
// goroutine meanwhile.
package load

import (
	"cmp"
	"context"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"

	"ledgerd/bench/dial"
)

const (
	// MostBytes is the longest body of a response, where a load names no other: a server that lies or never ends shall not take all memory.
	MostBytes = 256 << 20
	// defaultTimeout is how long a response may take.
	defaultTimeout = 10 * time.Second
	// grace is how long after a phase its last responses are waited for.
	grace = 2 * time.Second
	// catchUp is how long after a phase requests are sent that were due in it: a backlog that takes
	// longer is overload, and stays unsent.
	catchUp = 100 * time.Millisecond
)

// Config says what a load asks of whom. Address, Connections and Script are required.
type Config struct {
	Address     netip.AddrPort
	Dial        dial.Dialer
	Connections int
	Timeout     time.Duration // of a response; 0: 10 s
	MostBytes   int           // of the body of a response, which is kept until it is whole; 0: MostBytes
	Script      Script
	Learned     bool // what the script asks for was learned of the server: 404 says that it is gone meanwhile, and is no failure
	HTTP2       bool // requests are of HTTP/2: one at a time over each connection, as of HTTP/1.1
	StopAt429   bool // a phase sends nothing more after the first 429
	// Verify says what is wrong with the response to a request of the script over a connection. nil: nothing is verified.
	Verify      func(conn, request int, response *fasthttp.Response) error
	VerifyEvery int // of so many requests of the script one is verified; 0: each
}

// Load is a set of connections to a server. Close ends them.
type Load struct {
	config Config
	conns  []conn
	next   atomic.Uint64 // request of the script

	mu     sync.Mutex
	counts *Counts
}

// New returns a load that has not sent anything yet.
func New(c Config) *Load {
	c.Timeout, c.MostBytes, c.VerifyEvery = cmp.Or(c.Timeout, defaultTimeout), cmp.Or(c.MostBytes, MostBytes), max(1, c.VerifyEvery)
	l := &Load{config: c, conns: make([]conn, c.Connections), counts: NewCounts()}
	for i := range l.conns {
		l.conns[i].load, l.conns[i].index = l, i
	}
	return l
}

// Phase sends requests at a pace, waits up to two seconds for the last responses, and returns what was counted since the last Take. It
// ends early when ctx ends.
func (l *Load) Phase(ctx context.Context, pace Pace) *Counts {
	p := &phase{Load: l, Pace: pace, from: time.Now(), tickets: make(chan time.Duration)}
	length := pace.Length
	if pace.Rate > 0 {
		length += catchUp
	}
	p.until = p.from.Add(length + grace)
	p.ctx, p.stop = context.WithTimeout(ctx, length)
	defer p.stop()
	var stop context.CancelFunc
	p.last, stop = context.WithDeadline(ctx, p.until)
	defer stop()
	var busy sync.WaitGroup
	for i := range l.conns {
		busy.Go(func() { l.conns[i].ask(p) })
	}
	if pace.Rate > 0 {
		p.hand()
	}
	busy.Wait()
	l.mu.Lock()
	l.counts.Unsent += p.unsent
	l.counts.Took = time.Since(p.from)
	l.mu.Unlock()
	return l.Take()
}

// Take returns what was counted since the last time. Unsent and Took are known only when the phase is
// over.
func (l *Load) Take() *Counts {
	l.mu.Lock()
	defer l.mu.Unlock()
	taken := l.counts
	l.counts = NewCounts()
	return taken
}

// Close closes all connections.
func (l *Load) Close() {
	for i := range l.conns {
		l.conns[i].shut()
	}
}
