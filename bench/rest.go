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
	"ledgerd/bench/report"
)

var restScenarios = []Scenario{
	{"account", "How many requests for accounts are answered in a second, and what one costs.", runAccount},
	{"paced", "How long responses take at 5,000 requests a second, each due at a time of its own.", runPaced},
	{"mixed", "How long responses take at that rate while blocks come in and snapshots are taken.", runMixed},
}

var restGoals = []report.Goal{
	{Scenario: "account", Subject: "ledgerd", Unit: "cpu-us/req", Of: "bare", AtMost: 1.15,
		Why:   "a seventh is what the look-up among a million and the counting of limits may take, of which bare does neither",
		Needs: "fewer fields in an answer: each is set and written by itself, and those of limits differ from answer to answer"},
	{Scenario: "account", Subject: "ledgerd", Unit: "cpu-us/req", Of: "nginx", AtMost: 1.5,
		Why:   "nginx is what serves files that somebody writes for each account; it returns one text from its configuration",
		Needs: "a server that parses and writes HTTP with half of what fasthttp takes"},
	{Scenario: "account", Subject: "ledgerd", Unit: "cpu-us/req", Of: "nethttp", AtMost: 0.5,
		Why: "net/http with a map and encoding/json is what one writes by hand: half of it pays for a service that does more"},
	{Scenario: "account", Subject: "ledgerd", Unit: "cpu-us/req", Of: "webdis", AtMost: 0.85,
		Why: "Redis behind HTTP is the other way to have accounts without writing a server"},
	{Scenario: "paced", Subject: "ledgerd", Unit: "p50-ms", Of: "bare", AtMost: 1.25, Why: whyPaced},
	{Scenario: "paced", Subject: "ledgerd", Unit: "p99-ms", Of: "bare", AtMost: 1.25, Why: whyPaced},
	{Scenario: "paced", Subject: "ledgerd", Unit: "p99-ms", Of: "nethttp", AtMost: 1, Why: "who changes from a server written by hand waits no longer"},
	{Scenario: "mixed", Subject: "beside-ingest", Unit: "p99-ms", Of: "alone", AtMost: 1.5,
		Why: "a request waits at most for one step of ingest or of a snapshot, which are shorter than half of the slowest requests"},
}

const (
	whyPaced = "with idle processors a client sees what one request takes: a quarter is the look-up and the limits"

	restAccounts    = 1_000_000
	restConnections = 64
	// restPace is how many requests are due in a second where that is fixed. Load and server take half of two processors together: with more,
	// the percentiles would be those of who waits for a processor.
	restPace = 5000
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
func (s *restSubject) round(ctx context.Context, r *Run) error {
	l := s.start(r)
	defer l.Close()
	l.Phase(ctx, load.Pace{Length: r.Duration / restWarmup, Rate: s.rate})
	var n *load.Counts
	used, err := metered(func() error {
		n = l.Phase(ctx, load.Pace{Length: r.Duration, Rate: s.rate})
		return ctx.Err()
	}, s.pids(), loader)
	switch {
	case err != nil:
		return err
	case len(n.Wrong) > 0:
		return fmt.Errorf("%s: a response is wrong: %s", s.name, slices.Sorted(maps.Keys(n.Wrong))[0])
	case n.Answered() == 0:
		return fmt.Errorf("%s answers nothing: %v", s.name, n.Errors)
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
	return nil
}

// startREST starts a ledgerd that holds a million accounts, of which blocks update so many. Nothing is written to it while this is over.
func startREST(ctx context.Context, r *Run, updates int, flags ...string) (*rig, *restSubject, error) {
	accounts := max(r.Scaled(restAccounts), updates)
	g, err := startRig(ctx, r, feed.Config{Accounts: accounts, Updates: updates}, slices.Concat(restLimits, flags)...)
	if err == nil {
		err = g.pace(ctx, 0, restBlocks)
	}
	if err != nil {
		return nil, nil, err
	}
	return g, &restSubject{
		name: "ledgerd", of: accounts, ask: g.getAccount, verify: g.verifyAccount, load: load.Config{Address: g.address()},
		pids: func() []int { return []int{g.Pid()} },
	}, nil
}

// withPeers starts the peers and appends them to subjects. One that is absent is left out with a note.
func withPeers(ctx context.Context, r *Run, g *rig, subjects []*restSubject) ([]*restSubject, error) {
	answer, err := answerOf(ctx, g)
	if err != nil {
		return nil, err
	}
	accounts := subjects[0].of
	config := peer.Config{Self: r.Self, Dir: r.Dir, Answer: answer, Accounts: accounts}
	for _, kind := range peer.RESTPeers {
		s, err := kind.Start(ctx, config)
		if absent := (*peer.AbsentError)(nil); errors.As(err, &absent) {
			r.Note("%s is left out: %v", kind.Name, absent)
			continue
		}
		if err != nil {
			return nil, err
		}
		r.atEnd(func(bool) error { return s.Stop() })
		r.Note("%s (%s): %s", kind.Name, s.Version, kind.About)
		subjects = append(subjects, &restSubject{
			name: kind.Name, of: accounts, pids: s.Pids, load: load.Config{Address: s.Address},
			ask:    func(index int) []byte { return s.Request(keyOf(index)) },
			verify: verifyPeer(answer.Body, kind.LooksUp),
		})
	}
	return subjects, nil
}

func runAccount(ctx context.Context, r *Run) error { return besidePeers(ctx, r, 0) }

func runPaced(ctx context.Context, r *Run) error {
	return besidePeers(ctx, r, float64(r.Scaled(restPace)))
}

// besidePeers asks ledgerd and its peers in turns.
func besidePeers(ctx context.Context, r *Run, rate float64) error {
	r.Note(clientNote)
	g, own, err := startREST(ctx, r, restUpdates)
	if err != nil {
		return err
	}
	subjects := []*restSubject{own}
	if r.Peers {
		if subjects, err = withPeers(ctx, r, g, subjects); err != nil {
			return err
		}
	}
	for _, s := range subjects {
		s.rate = rate
	}
	return turns(r, subjects, func(s *restSubject) error { return s.round(ctx, r) })
}
