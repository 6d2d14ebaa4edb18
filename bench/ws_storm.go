package bench

import (
	"context"
	"errors"
	"net/http"
	"net/netip"
	"net/url"
	"time"

	"ledgerd/bench/feed"
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
	stormPollers  = 128     // connections that ask: so many that none waits for another
	stormRequests = 1 << 14 // different ones, before they come again
)

// storm is one run of the scenario.
type storm struct {
	*Run
	*rig
	poll *load.Load
	next int // how many addresses clients came from in this round
}

// runStorm has clients connect at the same moment, as after a restart, while somebody asks over REST at the pace of a busy network.
// Nobody is exempt, so that the caps hold.
func runStorm(ctx context.Context, r *Run) error {
	accounts := max(r.Scaled(networkAccounts), networkUpdates)
	g, err := startRig(ctx, r, feed.Config{Accounts: accounts, Updates: networkUpdates}, "--rate-limit-exempt", "192.0.2.0/24", "--retain-slots", "100")
	if err != nil {
		return err
	}
	defer g.Kill()
	before, err := g.standing()
	if err != nil {
		return err
	}
	config := load.Config{Address: g.address(), Connections: stormPollers, Rate: stormRate}
	config.Clients = 4 // one may have a hundred connections
	config.Script = load.NewScript(stormRequests, func(dst []byte, i int) []byte {
		return load.AppendGet(dst, config.Address.String(), "/api/account/"+feed.Key(i*7919%accounts).String(), load.AnyCoding)
	})
	s := &storm{Run: r, rig: g}
	if s.poll, err = load.New(config); err != nil {
		return err
	}
	defer s.poll.Close()
	polling, stop := context.WithCancel(ctx)
	defer stop()
	polled := make(chan error, 1)
	go func() {
		_, err := s.poll.Phase(polling, 24*time.Hour)
		polled <- err
	}()
	err = g.whileWriting(ctx, networkInterval, func() error {
		return turns(r, []string{"clients"}, func(subject string) error { return s.round(ctx, subject) })
	})
	stop()
	if err := errors.Join(err, <-polled); err != nil {
		return err
	}
	s.poll.Close()
	if err := g.recordLeft(ctx, r, before); err != nil {
		return err
	}
	return errors.Join(r.Note("the clients run in the process that asks over REST, on the same processors as the server"), g.Stop())
}

// round has all clients connect, then more than the caps allow, and sees that all who were let in are still there.
func (s *storm) round(ctx context.Context, subject string) error {
	s.next = 0
	s.poll.Take()
	if err := errors.Join(rest(ctx, s.Duration), s.recordREST("rest-before")); err != nil {
		return err
	}
	clients, err := s.room(s.Scaled(stormClients))
	if err != nil {
		return err
	}
	began := time.Now()
	crowd, in := s.connect(ctx, clients, stormEach)
	defer crowd.Close()
	handshakes := crowd.Handshakes().Summary()
	figures := []report.Figure{
		{Unit: "not-let-in", Value: float64(clients - in.Connected)}, {Unit: "all-in-s", Value: time.Since(began).Seconds()},
		{Unit: "handshake-p50-ms", Value: handshakes.P50}, {Unit: "handshake-p99-ms", Value: handshakes.P99},
	}
	if in.Why != nil {
		s.Say("storm: a client failed: %v", in.Why)
	}
	if err := s.recordREST("rest-meanwhile"); err != nil {
		return err
	}
	greedy, over := s.connect(ctx, stormGreedy, stormGreedy)
	defer greedy.Close()
	more, full, err := s.fill(ctx, in.Connected+over.Connected)
	if err != nil {
		return err
	}
	defer more.Close()
	lost := 0
	for _, pool := range []*listen.Pool{crowd, greedy, more} {
		connected := pool.Counts().Connected
		answered, err := pool.Ping(ctx)
		if err != nil {
			return err
		}
		lost += connected - answered
	}
	lost += in.Connected - crowd.Counts().Connected
	figures = append(append(figures, full...), report.Figure{Unit: "lost", Value: float64(lost)},
		report.Figure{Unit: "over-client-cap-not-429", Value: float64(stormGreedy - stormEach - int(over.Refused[http.StatusTooManyRequests]))})
	return errors.Join(s.recordREST("rest-afterwards"), s.Record(subject, clients, figures...))
}

// fill has so many clients connect that the server is full, and some more. That takes the full scale.
func (s *storm) fill(ctx context.Context, in int) (*listen.Pool, []report.Figure, error) {
	vacant := stormCap - in
	room, err := s.room(in + vacant + stormOver)
	if err != nil {
		return nil, nil, err
	}
	if room < in+vacant+stormOver || s.Scaled(stormClients) < stormClients {
		return listen.Open(ctx, listen.Config{}), nil, s.Note("filling the server up is left out: that takes the full scale, and the files for it")
	}
	pool, n := s.connect(ctx, vacant+stormOver, stormEach)
	return pool, []report.Figure{
		{Unit: "under-server-cap-not-in", Value: float64(vacant - n.Connected)},
		{Unit: "over-server-cap-not-503", Value: float64(stormOver - int(n.Refused[http.StatusServiceUnavailable]))},
	}, nil
}

// connect has clients connect at the same moment, so many from each of some addresses that nobody came from before. A connection
// whose first packets were dropped is tried again by the kernel after one, three, seven and fifteen seconds.
func (s *storm) connect(ctx context.Context, clients, each int) (*listen.Pool, listen.Counts) {
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
	return pool, pool.Counts()
}

// recordREST records how the requests fared since the last time.
func (s *storm) recordREST(subject string) error {
	c := s.poll.Take()
	return s.Record(subject, c.Answered(), append(times("", c.Latency), report.Figure{Unit: "not-ok", Value: float64(c.Failed())})...)
}
