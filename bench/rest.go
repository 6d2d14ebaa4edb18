package bench

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"slices"
	"time"

	"ledgerd/bench/feed"
	"ledgerd/bench/load"
	"ledgerd/bench/peer"
	"ledgerd/bench/report"
)

var restScenarios = []Scenario{
	{"account", "How many requests for accounts are answered in a second, and what one costs.", runAccount},
	{"paced", "How long responses take at 30,000 requests a second, each due at a time of its own.", runPaced},
	{"pipelined", "How many more are answered when 16 are in flight on each connection.", runPipelined},
	{"lists", "How many records of lists are answered in a second, and how long requests for accounts take meanwhile.", runLists},
	{"size", "What a request costs among 10,000,000 accounts, of what it costs among 100,000.", runSize},
	{"mixed", "How long responses take while blocks come in and snapshots are taken, at half of the greatest rate.", runMixed},
}

var restGoals = []report.Goal{
	{Scenario: "account", Subject: "ledgerd", Unit: "req/s", Of: "bare", AtLeast: 0.95},
	{Scenario: "account", Subject: "ledgerd", Unit: "req/s", Of: "nginx", AtLeast: 0.9},
	{Scenario: "account", Subject: "ledgerd", Unit: "req/s", Of: "webdis", AtLeast: 1.2},
	{Scenario: "account", Subject: "ledgerd", Unit: "req/s", Of: "nethttp", AtLeast: 2},
	{Scenario: "account", Subject: "ledgerd", Unit: "cpu-us/req", Of: "bare", AtMost: 1.15},
	{Scenario: "paced", Subject: "ledgerd", Unit: "p50-ms", Of: "bare", AtMost: 1.25},
	{Scenario: "paced", Subject: "ledgerd", Unit: "p99-ms", Of: "bare", AtMost: 1.25},
	{Scenario: "paced", Subject: "ledgerd", Unit: "p99-ms", Of: "nethttp", AtMost: 1},
	{Scenario: "paced", Subject: "ledgerd", Unit: "p99-ms", Of: "nginx", AtMost: 1.25},
	{Scenario: "paced", Subject: "ledgerd", Unit: "unsent", AtMost: 0},
	{Scenario: "pipelined", Subject: "16-in-flight", Unit: "req/s", Of: "one-in-flight", AtLeast: 4},
	{Scenario: "lists", Subject: "lists", Unit: "records/s", AtLeast: 1.5e6},
	{Scenario: "lists", Subject: "accounts-beside-lists", Unit: "p99-ms", Of: "accounts-alone", AtMost: 1.3},
	{Scenario: "size", Subject: "many-accounts", Unit: "cpu-us/req", Of: "few-accounts", AtMost: 1.15},
	{Scenario: "mixed", Subject: "busy", Unit: "p99-ms", Of: "idle-before-busy", AtMost: 1.5},
	{Scenario: "mixed", Subject: "busy", Unit: "p99.9-ms", AtMost: 10},
	{Scenario: "mixed", Subject: "heavy", Unit: "p99-ms", Of: "idle-before-heavy", AtMost: 2},
}

const (
	restAccounts    = 1_000_000
	restConnections = 64
	// restBlocks are published before anything is asked for, of few updates, so that not all accounts look the same.
	restBlocks  = 40
	restUpdates = 100
	// restRequests is how long a script is: so long that what it asks for does not stay in the caches of a processor.
	restRequests = 1 << 18
	// restWarmup is the part of a measurement that comes before it, and is not counted.
	restWarmup = 5
	// restClients is from how many addresses connections come: each has a limit of its own, which no run shall reach.
	restClients = 16
)

// restLimits have ledgerd count every request of every client, and refuse none: they are the most that it can count to.
var restLimits = []string{"--rate-limit-minute", "16777215", "--rate-limit-hour", "16777215", "--rate-limit-exempt", ""}

// restSubject is a server and what it is asked for.
type restSubject struct {
	name    string
	address netip.AddrPort
	redis   bool // it speaks the protocol of Redis
	of      int  // how many things there are to ask for
	write   func(dst []byte, index int) []byte
	verify  func(index, status int, head, body []byte) error
	pids    func() []int
	script  load.Script // once it was asked
	indexes []int       // what the requests of the script ask for
}

// prepare writes the script: requests for things that are chosen equally often, the same in every run.
func (s *restSubject) prepare(requests int) {
	choice := rand.New(rand.NewPCG(1, 1))
	s.indexes = make([]int, requests)
	s.script = load.NewScript(requests, func(dst []byte, i int) []byte {
		s.indexes[i] = choice.IntN(s.of)
		return s.write(dst, s.indexes[i])
	})
}

// how says in which way a subject is asked.
type how struct {
	connections int     // 0: 64
	depth       int     // requests in flight on each; 0: 1
	rate        float64 // 0: closed loop
}

// load returns a load of the subject.
func (s *restSubject) load(r *Run, h how) (*load.Load, error) {
	if s.script == nil {
		s.prepare(max(1000, r.Scaled(restRequests)))
	}
	if h.connections == 0 {
		h.connections = restConnections
	}
	c := load.Config{
		Address: s.address, Clients: restClients, Connections: h.connections, Depth: h.depth, Rate: h.rate, Script: s.script,
		Verify: func(request, status int, head, body []byte) error {
			return s.verify(s.indexes[request], status, head, body)
		},
	}
	if s.redis {
		c.Frame = load.FrameRedis
	}
	return load.New(c)
}

// restMeasured is what one measurement found.
type restMeasured struct {
	*load.Counts
	server, load time.Duration // of the processors
}

// measure warms up and asks for a round. A wrong response is an error; what is refused or unanswered is a figure.
func (s *restSubject) measure(ctx context.Context, r *Run, h how) (m restMeasured, err error) {
	l, err := s.load(r, h)
	if err != nil {
		return m, err
	}
	defer l.Close()
	if _, err := l.Phase(ctx, r.Duration/restWarmup); err != nil {
		return m, err
	}
	server, err1 := usageOf(s.pids()...)
	own, err2 := usageOf(os.Getpid())
	m.Counts, err = l.Phase(ctx, r.Duration)
	serverAfter, err3 := usageOf(s.pids()...)
	ownAfter, err4 := usageOf(os.Getpid())
	if err = errors.Join(err, err1, err2, err3, err4, ctx.Err()); err != nil {
		return m, err
	}
	m.server, m.load = serverAfter.cpu-server.cpu, ownAfter.cpu-own.cpu
	switch {
	case m.Wrong != nil:
		return m, fmt.Errorf("%s: %w", s.name, m.Wrong)
	case m.Answered() == 0:
		return m, fmt.Errorf("%s answers nothing: %v", s.name, m.Errors)
	}
	return m, nil
}

// record records a round with figures of its own beside those of every load.
func (m *restMeasured) record(r *Run, subject string, more ...report.Figure) error {
	n, p := float64(m.Answered()), m.Latency.Summary()
	return r.Record(subject, m.Answered(), slices.Concat([]report.Figure{
		{Unit: "req/s", Value: m.PerSecond()},
		{Unit: "cpu-us/req", Value: m.server.Seconds() * 1e6 / n},
		{Unit: "load-cpu-us/req", Value: m.load.Seconds() * 1e6 / n},
		{Unit: "p50-ms", Value: p.P50}, {Unit: "p90-ms", Value: p.P90}, {Unit: "p99-ms", Value: p.P99},
		{Unit: "p99.9-ms", Value: p.P999}, {Unit: "p99.99-ms", Value: p.P9999}, {Unit: "max-ms", Value: p.Max},
		{Unit: "B/resp", Value: float64(m.Bytes) / n},
		{Unit: "failed", Value: float64(m.Failed())}, {Unit: "unsent", Value: float64(m.Unsent)}, {Unit: "verified", Value: float64(m.Verified)},
	}, more)...)
}

// startREST starts a ledgerd that holds so many accounts, and to which nothing is written while it is asked for them.
func startREST(ctx context.Context, r *Run, accounts, updates int, args ...string) (*rig, *restSubject, error) {
	g, err := startRig(ctx, r, feed.Config{Accounts: accounts, Updates: min(updates, accounts)}, slices.Concat(restLimits, args)...)
	if err != nil {
		return nil, nil, err
	}
	for range restBlocks {
		if _, err = g.feed.Block(); err != nil {
			break
		}
	}
	err = errors.Join(err, g.await(ctx, g.feed.Newest()))
	address, err1 := addressOf(g.URL())
	if err = errors.Join(err, err1); err != nil {
		g.Kill()
		return nil, nil, err
	}
	t := &truth{address, g.feed.Config()}
	return g, &restSubject{
		name: "ledgerd", address: address, of: accounts, write: t.writeAccount, verify: t.verifyAccount,
		pids: func() []int { return []int{g.Pid()} },
	}, nil
}

// startPeers starts the peers, if they are wanted. One that is absent is left out with a note.
func startPeers(ctx context.Context, r *Run, ledgerd *restSubject) (subjects []*restSubject, stop func() error, err error) {
	var servers []*peer.RESTServer
	stop = func() (err error) {
		for _, s := range servers {
			err = errors.Join(err, s.Stop())
		}
		return err
	}
	if !r.Peers {
		return nil, stop, nil
	}
	answer, err := answerOf(ctx, ledgerd)
	if err != nil {
		return nil, stop, err
	}
	config := peer.RESTConfig{Self: r.Self, Dir: r.Dir, Answer: answer, Records: peer.Records{Count: ledgerd.of, Record: recordOf}}
	for _, p := range peer.RESTPeers {
		s, err := p.Start(ctx, config)
		if absent := (*peer.AbsentError)(nil); errors.As(err, &absent) {
			err = r.Note("%s is left out: %v", p.Name, absent)
			s = nil
		}
		if err != nil {
			return nil, stop, err
		}
		if s == nil {
			continue
		}
		servers = append(servers, s)
		if err := r.Note("%s (%s): %s", p.Name, s.Version, p.About); err != nil {
			return nil, stop, err
		}
		subjects = append(subjects, &restSubject{
			name: p.Name, address: s.Address, redis: s.Redis, of: ledgerd.of, pids: s.Pids,
			write:  func(dst []byte, index int) []byte { return s.Request(dst, keyOf(index)) },
			verify: verifyPeer(answer.Body, p.LooksUp),
		})
	}
	return subjects, stop, nil
}
