package bench

import (
	"context"
	"errors"
	"net/http"
	"net/netip"
	"net/url"
	"time"

	"ledgerd/bench/listen"
	"ledgerd/bench/load"
	"ledgerd/bench/report"
)

// The server's caps, as its documentation names them, and what goes beyond them.
const (
	stormClients  = 15_000
	stormCap      = 16_384  // WebSockets in all
	stormOver     = 300     // clients that come when it is full
	stormEach     = 20      // WebSockets of one client
	stormGreedy   = 30      // clients that come from one address
	stormRate     = 500     // requests a second
	stormSlow     = 2000    // clients that send a byte a second
	stormPollers  = 128     // connections that ask: so many that none waits for another
	stormRequests = 1 << 14 // different ones, before they come again
)

// storm is one run of the scenario.
type storm struct {
	*Run
	*rig
	poll  *load.Load
	crowd []*listen.Pool // who came in this round
	next  int            // from how many addresses
}

// runStorm has clients connect at the same moment, as after a restart, while somebody asks over REST at the pace of a busy network.
// Nobody is exempt, so that the caps hold.
func runStorm(ctx context.Context, r *Run) error {
	r.Note("the clients run in the process that asks over REST, on the same processors as the server")
	g, err := startNetwork(ctx, r, "--rate-limit-exempt", "192.0.2.0/24", "--retain-slots", "100")
	if err != nil {
		return err
	}
	before, err := standingOf(g.Server)
	if err != nil {
		return err
	}
	config := load.Config{Address: g.address(), Connections: stormPollers, Rate: stormRate, Clients: 4} // one may have a hundred connections
	config.Script = load.NewScript(stormRequests, func(dst []byte, i int) []byte {
		return g.writeAccount(dst, i*7919%g.feed.Config().Accounts)
	})
	s := &storm{Run: r, rig: g}
	if s.poll, err = load.New(config); err != nil {
		return err
	}
	defer s.poll.Close()
	err = while(ctx, endless(s.poll), func() error {
		return g.whileWriting(ctx, networkInterval, func() error {
			return turns(r, []string{"clients"}, func(subject string) error { return s.round(ctx, subject) })
		})
	})
	if err != nil {
		return err
	}
	s.poll.Close()
	return g.recordLeft(ctx, r, before)
}

// round has all clients connect, then more than the caps allow, and sees that all who were let in are still there.
func (s *storm) round(ctx context.Context, subject string) error {
	s.crowd, s.next = nil, 0
	// The server takes a while to let the last crowd go.
	if _, err := awaitMetrics(ctx, s.Server, s.Duration/10, func(m map[string]float64) bool { return m[connections] == 0 }); err != nil {
		return err
	}
	s.poll.Take()
	if err := rest(ctx, s.Duration); err != nil {
		return err
	}
	s.recordREST("rest-before")
	if err := s.besideSlow(ctx); err != nil {
		return err
	}
	clients := s.Scaled(stormClients)
	began := time.Now()
	in := s.connect(ctx, clients, stormEach)
	figures := []report.Figure{
		{Unit: "not-let-in", Value: float64(clients - in.Connected)}, {Unit: "all-in-s", Value: time.Since(began).Seconds()},
	}
	if in.Why != nil {
		s.Say("storm: a client failed: %v", in.Why)
	}
	s.recordREST("rest-meanwhile")
	greedy := s.connect(ctx, stormGreedy, stormGreedy)
	figures = append(figures, report.Figure{
		Unit: "over-client-cap-not-429", Value: float64(stormGreedy - stormEach - int(greedy.Refused[http.StatusTooManyRequests])),
	})
	connected := in.Connected + greedy.Connected
	if clients == stormClients {
		vacant := stormCap - connected
		more := s.connect(ctx, vacant+stormOver, stormEach)
		connected += more.Connected
		figures = append(figures, report.Figure{Unit: "under-server-cap-not-in", Value: float64(vacant - more.Connected)},
			report.Figure{Unit: "over-server-cap-not-503", Value: float64(stormOver - int(more.Refused[http.StatusServiceUnavailable]))})
	} else {
		s.Note("filling the server up is left out: that takes the full scale")
	}
	for _, pool := range s.crowd {
		answered, err := pool.Ping(ctx)
		if err != nil {
			return err
		}
		connected -= answered
	}
	s.Record(subject, clients, append(figures, report.Figure{Unit: "lost", Value: float64(connected)})...)
	return nil
}

// besideSlow records how requests fare beside clients that send theirs a byte a second: the server closes each of them, which then connects again.
func (s *storm) besideSlow(ctx context.Context) error {
	count := s.Scaled(stormSlow)
	slow, err := load.New(load.Config{
		Address: s.address(), Clients: 100, Connections: count, Depth: 60, Rate: float64(count), Script: load.Script{[]byte("x")},
	})
	if err != nil {
		return err
	}
	defer slow.Close()
	err = while(ctx, endless(slow), func() error {
		err := rest(ctx, s.Duration)
		s.poll.Take()
		return errors.Join(err, rest(ctx, s.Duration))
	})
	s.recordREST("rest-beside-slow")
	return err
}

// endless returns what asks until its context ends.
func endless(l *load.Load) func(ctx context.Context) error {
	return func(ctx context.Context) error {
		_, err := l.Phase(ctx, 24*time.Hour)
		return err
	}
}

// connect has clients connect at the same moment, so many from each of some addresses that nobody came from before. A connection
// whose first packets were dropped is tried again by the kernel after one, three, seven and fifteen seconds.
func (s *storm) connect(ctx context.Context, clients, each int) listen.Counts {
	first := s.next
	s.next += (clients + each - 1) / each
	pool := listen.Open(ctx, listen.Config{
		Sockets: clients, AtOnce: clients, URL: s.StreamURL(), Timeout: time.Minute,
		Query: func(int) url.Values { return url.Values{"mode": {"none"}} },
		Local: func(i int) netip.Addr {
			n := first + i/each
			return netip.AddrFrom4([4]byte{127, 1, byte(n / 250), byte(1 + n%250)})
		},
	})
	s.atEnd(func(bool) error { pool.Close(); return nil })
	s.crowd = append(s.crowd, pool)
	return pool.Counts()
}

// recordREST records how the requests fared since the last time.
func (s *storm) recordREST(subject string) {
	c := s.poll.Take()
	s.Record(subject, c.Answered(), append(times("", c.Latency), report.Figure{Unit: "not-ok", Value: float64(c.Failed())})...)
}
