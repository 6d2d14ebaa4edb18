package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"

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
	{Scenario: "account", Subject: "ledgerd", Unit: "req/s", Of: "bare", AtLeast: 0.95, Why: whyLookups},
	{Scenario: "account", Subject: "ledgerd", Unit: "req/s", Of: "nginx", AtLeast: 0.9, Why: whyLookups},
	{Scenario: "account", Subject: "ledgerd", Unit: "req/s", Of: "webdis", AtLeast: 1.2, Why: whyLoader},
	{Scenario: "account", Subject: "ledgerd", Unit: "req/s", Of: "nethttp", AtLeast: 2, Why: whyLoader},
	{Scenario: "account", Subject: "ledgerd", Unit: "cpu-us/req", Of: "bare", AtMost: 1.15, Why: whyLookups},
	{Scenario: "paced", Subject: "ledgerd", Unit: "p50-ms", Of: "bare", AtMost: 1.25},
	{Scenario: "paced", Subject: "ledgerd", Unit: "p99-ms", Of: "bare", AtMost: 1.25},
	{Scenario: "paced", Subject: "ledgerd", Unit: "p99-ms", Of: "nethttp", AtMost: 1},
	{Scenario: "paced", Subject: "ledgerd", Unit: "p99-ms", Of: "nginx", AtMost: 1.25},
	{Scenario: "paced", Subject: "ledgerd", Unit: "unsent", AtMost: 0},
	{Scenario: "pipelined", Subject: "16-in-flight", Unit: "req/s", Of: "one-in-flight", AtLeast: 4,
		Why: "the five header fields of a request are parsed for each, in flight with others or not"},
	{Scenario: "lists", Subject: "lists", Unit: "records/s", AtLeast: 1.5e6},
	{Scenario: "lists", Subject: "accounts-beside-lists", Unit: "p99-ms", Of: "accounts-alone", AtMost: 1.3},
	{Scenario: "size", Subject: "many-accounts", Unit: "cpu-us/req", Of: "few-accounts", AtMost: 1.15},
	{Scenario: "mixed", Subject: "busy", Unit: "p99-ms", Of: "idle-before-busy", AtMost: 1.5},
	{Scenario: "mixed", Subject: "busy", Unit: "p99.9-ms", AtMost: 10},
	{Scenario: "mixed", Subject: "heavy", Unit: "p99-ms", Of: "idle-before-heavy", AtMost: 2},
}

const (
	whyLookups = "ledgerd looks the account up among a million and counts the client against its limits; bare and nginx do neither"
	whyLoader  = "the load takes its time from the same two processors, so the ratio of requests is less than that of cpu-us/req"

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
	name   string
	of     int // how many things there are to ask for
	write  func(dst []byte, index int) []byte
	verify func(index int, head, body []byte) error // of a response with status 200
	pids   func() []int
	load   load.Config // how it is asked: over 64 connections, if it does not say
}

// index returns what a request of the script asks for: each thing equally often and in no order, the same in every run.
func (s *restSubject) index(request int) int {
	return rand.New(rand.NewPCG(1, uint64(request))).IntN(s.of)
}

// prepare writes the script.
func (s *restSubject) prepare(requests int) {
	s.load.Script = load.NewScript(requests, func(dst []byte, i int) []byte { return s.write(dst, s.index(i)) })
}

// start returns a load of the subject.
func (s *restSubject) start(r *Run) (*load.Load, error) {
	if s.load.Script == nil {
		s.prepare(max(1000, r.Scaled(restRequests)))
	}
	c := s.load
	c.Clients = restClients
	c.Connections = cmp.Or(c.Connections, restConnections)
	c.Verify = func(request, status int, head, body []byte) error {
		if status != http.StatusOK {
			return fmt.Errorf("status %d: %.200q", status, body)
		}
		return s.verify(s.index(request), head, body)
	}
	return load.New(c)
}

// restMeasured is what one measurement found.
type restMeasured struct {
	*load.Counts
	used
}

// measure warms up and asks for a round. A wrong response is an error; what is refused or unanswered is a figure.
func (s *restSubject) measure(ctx context.Context, r *Run) (m restMeasured, err error) {
	l, err := s.start(r)
	if err != nil {
		return m, err
	}
	defer l.Close()
	if _, err := l.Phase(ctx, r.Duration/restWarmup); err != nil {
		return m, err
	}
	m.used, err = metered(func() (err error) {
		m.Counts, err = l.Phase(ctx, r.Duration)
		return errors.Join(err, ctx.Err())
	}, s.pids(), loader)
	switch {
	case err != nil:
	case m.Wrong != nil:
		err = fmt.Errorf("%s: %w", s.name, m.Wrong)
	case m.Answered() == 0:
		err = fmt.Errorf("%s answers nothing: %v", s.name, m.Errors)
	}
	return m, err
}

// record records a round with figures of its own beside those of every load.
func (m *restMeasured) record(r *Run, subject string, more ...report.Figure) {
	n, p := float64(m.Answered()), m.Latency.Summary()
	r.Record(subject, m.Answered(), slices.Concat([]report.Figure{
		{Unit: "req/s", Value: m.PerSecond()},
		{Unit: "cpu-us/req", Value: m.cpu[0].Seconds() * 1e6 / n},
		{Unit: "load-cpu-us/req", Value: m.cpu[1].Seconds() * 1e6 / n},
		{Unit: "p50-ms", Value: p.P50}, {Unit: "p90-ms", Value: p.P90}, {Unit: "p99-ms", Value: p.P99},
		{Unit: "p99.9-ms", Value: p.P999}, {Unit: "p99.99-ms", Value: p.P9999}, {Unit: "max-ms", Value: p.Max},
		{Unit: "B/resp", Value: float64(m.Bytes) / n},
		{Unit: "failed", Value: float64(m.Failed())}, {Unit: "unsent", Value: float64(m.Unsent)}, {Unit: "verified", Value: float64(m.Verified)},
	}, more)...)
}

// round measures and records under the subject's name.
func (s *restSubject) round(ctx context.Context, r *Run) error {
	m, err := s.measure(ctx, r)
	if err == nil {
		m.record(r, s.name)
	}
	return err
}

// startREST starts a ledgerd that holds so many accounts, and to which nothing is written while it is asked for them.
func startREST(ctx context.Context, r *Run, accounts, updates int, args ...string) (*rig, *restSubject, error) {
	g, err := startRig(ctx, r, feed.Config{Accounts: accounts, Updates: min(updates, accounts)}, slices.Concat(restLimits, args)...)
	if err == nil {
		err = g.pace(ctx, 0, restBlocks)
	}
	if err != nil {
		return nil, nil, err
	}
	return g, &restSubject{
		name: "ledgerd", of: accounts, write: g.writeAccount, verify: g.verifyAccount, load: load.Config{Address: g.address()},
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
	config := peer.Config{Self: r.Self, Dir: r.Dir, Answer: answer, Records: peer.Records{Count: accounts, Record: baseRecord}}
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
			name: kind.Name, of: accounts, pids: s.Pids, load: load.Config{Address: s.Address, Frame: s.Frame},
			write:  func(dst []byte, index int) []byte { return s.Request(dst, keyOf(index)) },
			verify: verifyPeer(answer.Body, kind.LooksUp),
		})
	}
	return subjects, nil
}
