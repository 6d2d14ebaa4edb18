package bench

import (
	"context"
	"net/url"
	"sync"
	"time"

	"ledgerd/bench/dial"
	"ledgerd/bench/listen"
	"ledgerd/bench/load"
	"ledgerd/bench/report"
	"ledgerd/engine/ledger/wait"
)

const (
	stormClients  = 15_000
	stormEach     = 20      // WebSockets of one client, which is all that the server allows it
	stormOthers   = 250     // the first addresses are of others than those that connect
	stormRate     = 500     // requests a second
	stormSlow     = 2000    // clients that send a byte a second
	stormPollers  = 128     // connections that ask: so many that none waits for another
	stormRequests = 1 << 14 // different ones, before they come again
)

// storm is one run of the scenario.
type storm struct {
	*Run
	*rig
	poll *load.Load
}

// runStorm has clients connect at the same moment, as after a restart, while somebody asks over REST at the pace of a busy network.
// Nobody is exempt, so that the caps hold.
func runStorm(ctx context.Context, r *Run) {
	r.Note("the clients run in the process that asks over REST, on the same processors as the server")
	g := startNetwork(ctx, r, "--rate-limit-exempt", "192.0.2.0/24", "--retain-slots", "100")
	config := load.Config{Address: g.address(), Connections: stormPollers, Dial: dial.Dialer{From: dial.Loopback(4)}} // one may have a hundred connections
	config.Script = load.NewScript(stormRequests, func(i int) []byte {
		return g.getAccount(i * 7919 % g.feed.Config().Accounts)
	})
	s := &storm{r, g, load.New(config)}
	defer s.poll.Close()
	endless := func(ctx context.Context) { s.poll.Phase(ctx, load.Pace{Length: 24 * time.Hour, Rate: stormRate}) }
	while(ctx, endless, func() {
		g.whileWriting(ctx, networkInterval, func() { inTurns(r, func() { s.round(ctx) }) })
	})
}

// round records how requests fare before, beside slow clients, and while all clients connect, and sees that all who were let in are still there.
func (s *storm) round(ctx context.Context) {
	// The server takes a while to let the last crowd go.
	awaitMetrics(ctx, s.Server, s.Duration/10, func(m map[string]float64) bool { return m[connections] == 0 })
	s.poll.Take()
	check(wait.Sleep(ctx, s.Duration))
	s.recordREST("rest-before")
	while(ctx, s.slow, func() {
		check(wait.Sleep(ctx, s.Duration))
		s.poll.Take()
		check(wait.Sleep(ctx, s.Duration))
	})
	s.recordREST("rest-beside-slow")
	clients, began := s.Scaled(stormClients), time.Now()
	crowd := s.connect(ctx, clients)
	in, took := crowd.Counts(), time.Since(began)
	s.recordREST("rest-meanwhile")
	if in.Why != nil {
		s.Say("storm: a client failed: %v", in.Why)
	}
	check(wait.Sleep(ctx, time.Second)) // by then who is dropped knows it
	s.Record("clients", clients, report.Figure{Unit: "not-let-in", Value: float64(clients - in.Connected)},
		report.Figure{Unit: "lost", Value: float64(in.Connected - crowd.Counts().Connected)}, report.Figure{Unit: "all-in-s", Value: took.Seconds()})
}

// slow has clients send requests a byte a second, each at moments of its own. The server closes each of them, which then connects again.
func (s *storm) slow(ctx context.Context) {
	var clients sync.WaitGroup
	from := dial.Dialer{From: dial.Loopback(100)}
	all := s.Scaled(stormSlow)
	for i := range all {
		clients.Go(func() {
			_ = wait.Sleep(ctx, time.Second*time.Duration(i)/time.Duration(all))
			for ctx.Err() == nil {
				conn, err := from.Dial(ctx, i, s.address().String())
				for err == nil && wait.Sleep(ctx, time.Second) == nil {
					_, err = conn.Write([]byte("x"))
				}
				if conn != nil {
					_ = conn.Close()
				} else {
					_ = wait.Sleep(ctx, time.Second)
				}
			}
		})
	}
	clients.Wait()
}

// connect has clients connect at the same moment, so many from each of some addresses. A connection whose first packets were dropped is tried
// again by the kernel after one, three, seven and fifteen seconds.
func (s *storm) connect(ctx context.Context, clients int) *listen.Pool {
	pool := listen.Open(ctx, listen.Config{
		Sockets: clients, AtOnce: clients, URL: s.StreamURL(), Query: func(int) url.Values { return url.Values{"mode": {"none"}} },
		Dial: dial.Dialer{Timeout: time.Minute, From: dial.Loopback(stormOthers + 1 + clients/stormEach)[stormOthers:]},
	})
	s.atEnd(func() error { pool.Close(); return nil })
	return pool
}

// recordREST records how the requests fared since the last time.
func (s *storm) recordREST(subject string) {
	c := s.poll.Take()
	s.Record(subject, c.Answered(), append(times(c.Latency), report.Figure{Unit: "not-ok", Value: float64(c.Failed())})...)
}
