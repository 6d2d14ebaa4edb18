package bench

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"

	"github.com/valyala/fasthttp"

	"ledgerd/bench/dial"
	"ledgerd/bench/feed"
	"ledgerd/bench/load"
	"ledgerd/bench/peer"
	"ledgerd/bench/proc"
	"ledgerd/bench/report"
)

const (
	restAccounts    = 1_000_000
	restConnections = 64
	// restPace is how many requests are due in a second where that is fixed. A request takes the server 114 us at that pace and the load 133: together
	// half of two processors. With more, the percentiles would be those of who waits for a processor.
	restPace = 4000
	// restBlocks are published before anything is asked for, of few updates, so that not all accounts look the same.
	restBlocks  = 40
	restUpdates = 100
	// restRequests is how long a script is: so long that what it asks for does not stay in the caches of a processor.
	restRequests = 1 << 18
	// restWarmup is the part of a measurement that comes before it, and is not counted.
	restWarmup = 5
	// restClients is from how many addresses connections come: each has a limit of its own, which no run shall reach.
	restClients = 16
	// restVerify is of how many requests of a script one response is verified.
	restVerify = 256
)

// clientNote discloses in which shape requests are, and from where.
const clientNote = "every server is asked with the same five header fields, as python-requests sends them, over 64 connections from 16 loopback addresses; " +
	"ledgerd counts each address against its rate limits, and refuses none; one response of 256 is verified"

// restLimits have ledgerd count every request of every client, and refuse none: they are the most that it can count to.
var restLimits = []string{"--rate-limit-minute", "16777215", "--rate-limit-hour", "16777215", "--rate-limit-exempt", ""}

// restSubject is a server and what it is asked for.
type restSubject struct {
	name     string
	of       int // how many things there are to ask for
	ask      func(index int) []byte
	verify   func(index int, response *fasthttp.Response) error // of a response with status 200
	pids     func() []int
	load     load.Config // where it is asked
	rate     float64     // at which it is asked; 0: closed loop
	accounts int         // of a request; 0: one, which is not told
}

// index returns what a request of the script asks for: each thing equally often and in no order, the same in every run.
func (s *restSubject) index(request int) int {
	return rand.New(rand.NewPCG(1, uint64(request))).IntN(s.of)
}

// start returns a load of the subject.
func (s *restSubject) start(r *Run) *load.Load {
	if s.load.Script == nil {
		s.load.Script = load.NewScript(max(1000, r.Scaled(restRequests)), func(i int) []byte { return s.ask(s.index(i)) })
	}
	c := s.load
	c.Dial.From, c.Connections, c.VerifyEvery = dial.Loopback(restClients), restConnections, restVerify
	c.Verify = func(_, request int, response *fasthttp.Response) error {
		if status := response.StatusCode(); status != http.StatusOK {
			return fmt.Errorf("status %d: %.200q", status, response.Body())
		}
		return s.verify(s.index(request), response)
	}
	return load.New(c)
}

// round warms up, asks, and records the figures. A wrong response is an error; what is refused or unanswered is a figure.
func (s *restSubject) round(ctx context.Context, r *Run) {
	l := s.start(r)
	defer l.Close()
	l.Phase(ctx, load.Pace{Length: r.Duration / restWarmup, Rate: s.rate})
	var n *load.Counts
	used := metered(func() {
		n = l.Phase(ctx, load.Pace{Length: r.Duration, Rate: s.rate})
		check(ctx.Err())
	}, s.pids(), loader)
	if len(n.Wrong) > 0 {
		check(fmt.Errorf("%s: a response is wrong: %s", s.name, slices.Sorted(maps.Keys(n.Wrong))[0]))
	}
	if n.Answered() == 0 {
		check(fmt.Errorf("%s answers nothing: %v", s.name, n.Errors))
	}
	each, p := float64(n.Answered()), n.Latency.Summary()
	var more []report.Figure
	if s.accounts > 0 {
		more = append(more, report.Figure{Unit: "accounts/s", Value: n.PerSecond() * float64(s.accounts)})
	}
	r.Record(s.name, n.Answered(), append(more,
		report.Figure{Unit: "req/s", Value: n.PerSecond()},
		report.Figure{Unit: "cpu-us/req", Value: used.cpu[0].Seconds() * 1e6 / each},
		report.Figure{Unit: "load-cpu-us/req", Value: used.cpu[1].Seconds() * 1e6 / each},
		report.Figure{Unit: "p50-ms", Value: p.P50}, report.Figure{Unit: "p99-ms", Value: p.P99}, report.Figure{Unit: "p99.9-ms", Value: p.P999},
		report.Figure{Unit: "failed", Value: float64(n.Failed())}, report.Figure{Unit: "unsent", Value: float64(n.Unsent)},
	)...)
}

// startREST starts a ledgerd that holds a million accounts, of which blocks update so many. Nothing is written to it while this is over.
func startREST(ctx context.Context, r *Run, updates int, flags ...string) (*rig, *restSubject) {
	accounts := max(r.Scaled(restAccounts), updates)
	g := startRig(ctx, r, feed.Config{Accounts: accounts, Updates: updates}, slices.Concat(restLimits, flags)...)
	g.pace(ctx, 0, restBlocks)
	return g, &restSubject{
		name: "ledgerd", of: accounts, ask: g.getAccount, verify: g.verifyAccount, load: load.Config{Address: g.address()},
		pids: func() []int { return []int{g.Pid()} },
	}
}

// startPeers starts the peers that are there. One that is absent is left out with a note.
func startPeers(ctx context.Context, r *Run, answer peer.Answer, accounts int) (subjects []*restSubject) {
	for i := range peer.RESTPeers {
		kind := &peer.RESTPeers[i]
		s, err := startPeer(ctx, r, kind, peer.Config{Answer: answer, Accounts: accounts})
		if absent, ok := errors.AsType[*proc.AbsentError](err); ok {
			r.Note("%s is left out: %v", kind.Name, absent)
			continue
		}
		check(err)
		subjects = append(subjects, &restSubject{
			name: kind.Name, of: accounts, pids: s.Pids, load: load.Config{Address: s.Address},
			ask:    func(index int) []byte { return s.Request(keyOf(index)) },
			verify: verifyPeer(answer.Body, kind.LooksUp),
		})
	}
	return subjects
}

// startPeer starts one, which ends with the scenario, and says what it is.
func startPeer(ctx context.Context, r *Run, kind *peer.Peer, c peer.Config) (*peer.Server, error) {
	c.Self, c.Dir = r.Self, r.Dir
	s, err := kind.Start(ctx, c)
	if err == nil {
		r.atEnd(func() error { return s.Stop() })
		r.Note("%s (%s): %s", kind.Name, s.Version, kind.About)
	}
	return s, err
}

func runAccount(ctx context.Context, r *Run) { besidePeers(ctx, r, 0) }

func runPaced(ctx context.Context, r *Run) { besidePeers(ctx, r, float64(r.Scaled(restPace))) }

// besidePeers asks ledgerd and its peers in turns.
func besidePeers(ctx context.Context, r *Run, rate float64) {
	r.Note(clientNote)
	g, own := startREST(ctx, r, restUpdates)
	subjects := []*restSubject{own}
	if r.Peers {
		subjects = append(subjects, startPeers(ctx, r, askFor(ctx, http.MethodGet, g.URL()+"/account/"+keyOf(0), ""), own.of)...)
	}
	for _, s := range subjects {
		s.rate = rate
	}
	turns(r, subjects, func(s *restSubject) { s.round(ctx, r) })
}
