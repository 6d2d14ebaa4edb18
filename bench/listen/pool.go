package listen

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/fasthttp/websocket"

	"ledgerd/bench/dial"
	"ledgerd/bench/latency"
	"ledgerd/engine/ledger/wait"
)

// Config says what subscribers a pool has. Of those that have no zero value that works, it needs URL or Dial.
type Config struct {
	Sockets int
	URL     string                 // ws://HOST:PORT/api/ws/accounts
	Query   func(i int) url.Values // what subscriber i asks for; nil: everything
	Opening func(i int) [][]byte   // what subscriber i says first, such as the subscribe message for many accounts; nil: nothing
	Dial    dial.Dialer
	Headers []http.Header          // sent with the handshake, of subscribers in turns
	AtOnce  int                    // how many connect at the same time; 0: 64
	Ramp    time.Duration          // over which they connect for the first time; 0: at once
	Connect func() (Stream, error) // connects instead of all that

	Throttled int // so many of the subscribers read slowly
	Throttle  int // bytes a second of each

	CheckNumbers bool // asks for extended frames and keeps books
	FrameBytes   int  // of every frame, with its header: all but a sample only count bytes; 0: all read frames
	Reconnect    bool // a subscriber whose connection ends comes back, and resumes where it was

	Ended func(slot uint64, first time.Time) // is told when the first subscriber receives the end of a slot; nil: nobody is
}

// Counts is what all subscribers of a pool have received so far, and how their connections fared.
type Counts struct {
	Frames, Bytes, Updates int64
	Missing, Twice         int64         // of subscribers of everything at the processed level
	Conflated              int64         // numbers of which only the newest states came, because the subscriber had asked for that
	Resumed                int64         // connections that went on where the one before had ended
	Resyncs, Passed        int64         // those that could not, and the numbers that they passed over
	Connected              int           // now
	Closes                 map[int]int64 // by code; 0: it broke
	Refused                map[int]int64 // upgrades, by status
	Failed                 int64         // connections that were not answered
	Why                    error         // the first of what was refused, failed or closed
}

// Pool is a number of subscribers. It is safe for concurrent use.
type Pool struct {
	config      Config
	ctx         context.Context
	end         context.CancelFunc
	turns       chan struct{} // has room for those that connect at the same time
	running     sync.WaitGroup
	subscribers []*subscriber
	arrivals    arrivals

	mu     sync.Mutex
	counts Counts // of connections
}

// Open has subscribers connect and waits until each has tried once. How that went is in Counts.
func Open(ctx context.Context, c Config) *Pool {
	p := &Pool{config: c, arrivals: arrivals{told: c.Ended, skew: latency.New()}}
	p.counts = Counts{Closes: make(map[int]int64), Refused: make(map[int]int64)}
	p.ctx, p.end = context.WithCancel(ctx)
	p.turns = make(chan struct{}, cmp.Or(c.AtOnce, 64))
	var tried sync.WaitGroup
	tried.Add(c.Sockets)
	for i := range c.Sockets {
		p.subscribers = append(p.subscribers, newSubscriber(p, i))
	}
	for _, s := range p.subscribers {
		p.running.Go(func() { s.run(sync.OnceFunc(tried.Done)) })
	}
	tried.Wait()
	return p
}

// OpenAll is Open for a pool all of whose subscribers must connect.
func OpenAll(ctx context.Context, c Config) (*Pool, error) {
	p := Open(ctx, c)
	if n := p.Counts(); n.Connected < c.Sockets {
		p.Close()
		return nil, fmt.Errorf("%d of %d subscribers connected: %w", n.Connected, c.Sockets, errors.Join(n.Why, ctx.Err()))
	}
	return p, nil
}

// Close ends all subscribers.
func (p *Pool) Close() {
	p.end()
	p.running.Wait()
}

// Counts returns what was received so far.
func (p *Pool) Counts() Counts {
	var c Counts
	for _, s := range p.subscribers {
		s.mu.Lock()
		if s.stream != nil {
			c.Connected++
		}
		b := &s.book
		c.Frames, c.Bytes = c.Frames+s.frames, c.Bytes+s.bytes
		c.Updates, c.Missing, c.Twice = c.Updates+b.updates, c.Missing+b.missing, c.Twice+b.twice
		c.Conflated += b.conflated
		c.Resumed, c.Resyncs, c.Passed = c.Resumed+b.resumed, c.Resyncs+b.resyncs, c.Passed+b.passed
		s.mu.Unlock()
	}
	p.mu.Lock() // after the subscribers: of one that is gone the reason is counted then
	defer p.mu.Unlock()
	c.Closes, c.Refused, c.Failed, c.Why = maps.Clone(p.counts.Closes), maps.Clone(p.counts.Refused), p.counts.Failed, p.counts.Why
	return c
}

// countEnd counts how a connection ended, or why there was none.
func (p *Pool) countEnd(connected bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var refused *RefusedError
	var closed *websocket.CloseError
	switch {
	case errors.As(err, &refused):
		p.counts.Refused[refused.Status]++
	case !connected:
		p.counts.Failed++
	case errors.As(err, &closed) && closed.Code != websocket.CloseAbnormalClosure:
		p.counts.Closes[closed.Code]++
	default:
		p.counts.Closes[0]++
		err = fmt.Errorf("a connection broke: %w", err)
	}
	if p.counts.Why == nil {
		p.counts.Why = err
	}
}

// isSample reports whether a subscriber reads frames where most only count bytes: every 100th, and at least four.
func (p *Pool) isSample(i int) bool { return i%max(1, min(100, p.config.Sockets/4)) == 0 }

// Skew returns how much later than the first subscriber the others received the ends of slots, since the last call.
func (p *Pool) Skew() *latency.Histogram { return p.arrivals.takeSkew() }

// Arrived returns when the first subscriber received the end of a slot; zero: not yet.
func (p *Pool) Arrived(slot uint64) (first time.Time) { return p.arrivals.arrived(slot) }

// patience is how long subscribers may receive nothing of what they wait for.
const patience = 30 * time.Second

// Await waits until every subscriber has received as many frames as given for it.
func (p *Pool) Await(ctx context.Context, frames func(i int) int64) error {
	pause := time.Millisecond * time.Duration(1+len(p.subscribers)/1000) // looking takes time too
	moved, before := time.Now(), int64(-1)
	for i := 0; i < len(p.subscribers); {
		got, ended := p.subscribers[i].received()
		switch {
		case got >= frames(i):
			i++
			continue
		case ended != nil && !p.config.Reconnect:
			return fmt.Errorf("subscriber %d was dropped after %d of %d frames: %w", i, got, frames(i), ended)
		case got > before:
			moved = time.Now()
		case time.Since(moved) > patience:
			return fmt.Errorf("subscriber %d has received %d of %d frames, and nothing for %v", i, got, frames(i), patience)
		}
		before = got
		if err := wait.Sleep(ctx, pause); err != nil {
			return err
		}
	}
	return nil
}
