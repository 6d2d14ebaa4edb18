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
// Each connection has a goroutine while a phase runs, which reads responses with fasthttp. A request
// takes a load two thirds of the time that it takes a ledgerd, so a load on one processor has a
// ledgerd on another at its limit. Connections are opened when they are first needed and stay open between phases. One phase runs
// at a time; Take may be called by any goroutine meanwhile.
package load

import (
	"context"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"
)

const (
	// patience is how long a response may take.
	patience = 10 * time.Second
	// grace is how long after a phase its last responses are waited for.
	grace = 2 * time.Second
	// catchUp is how long after a phase requests are sent that were due in it: a backlog that takes
	// longer is overload, and stays unsent.
	catchUp = 100 * time.Millisecond
	// verifyEvery is of how many responses one is verified.
	verifyEvery = 256
)

// Config says what a load asks of whom. Address, Connections and Script are required.
type Config struct {
	Address     netip.AddrPort
	Clients     int // loopback addresses to come from, in turns; 0: any
	Connections int
	Rate        float64 // requests a second, all connections together; 0: closed loop
	Script      Script
	StopAt429   bool // a phase sends nothing more after the first 429
	// Verify says what is wrong with the response to a request of the script. One response of 256
	// is verified. nil: none is.
	Verify func(request int, response *fasthttp.Response) error
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
	l := &Load{config: c, conns: make([]conn, c.Connections), counts: NewCounts()}
	for i := range l.conns {
		l.conns[i].load, l.conns[i].index = l, i
	}
	return l
}

// Phase sends requests for so long, waits up to two seconds for the last responses, and returns what
// was counted since the last Take. It ends early when ctx ends.
func (l *Load) Phase(ctx context.Context, length time.Duration) *Counts {
	p := &phase{Load: l, from: time.Now(), length: length, tickets: make(chan time.Duration)}
	if l.config.Rate > 0 {
		length += catchUp
	}
	p.ctx, p.stop = context.WithTimeout(ctx, length)
	defer p.stop()
	var busy sync.WaitGroup
	for i := range l.conns {
		busy.Go(func() { l.conns[i].ask(p) })
	}
	if l.config.Rate > 0 {
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
