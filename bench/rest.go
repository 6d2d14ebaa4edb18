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
	"ledgerd/bench/peer"
)

// RESTOptions say how it is asked over REST.
type RESTOptions struct {
	Connections int     // 0: 64
	Depth       int     // requests on the way on each connection; 0: 1
	Fresh       bool    // a connection for each request
	Rate        float64 // requests a second, each due at a time of its own; 0: as many as are answered
	Zipf        bool    // a few accounts are asked for often; else all equally often
	Misses      float64 // share of requests for accounts that do not exist
	Mix         bool    // ask for other things than accounts too
}

const (
	restAccounts    = 1_000_000
	restConnections = 64
	restDepth       = 16 // where pipelining is measured
	// restRequests is how long a script is: so long that what it asks for does not stay in the
	// caches of a processor.
	restRequests = 1 << 18
	// restWarmup is the part of a measurement that comes before it, and is not counted.
	restWarmup = 5
	// restPerAddress is how many connections come from one address, as long as there are addresses:
	// each client has a limit of its own, which no run shall reach.
	restPerAddress = 4
	restAddresses  = 250
	// livePerAddress is the same at a server that runs already, whose limits are respected.
	livePerAddress = 2000
	// restPace is how many requests are due in a second where it is asked at a fixed rate.
	restPace = 30_000
	// restSkew is the exponent of the law by which some accounts are asked for more often than
	// others.
	restSkew = 1.1
)

// restLimits have ledgerd count every request of every client, and refuse none: they are the most that
// it can count to.
var restLimits = []string{"--rate-limit-minute", "16777215", "--rate-limit-hour", "16777215", "--rate-limit-exempt", ""}

// Validate says what is wrong with the options, if something is.
func (o *RESTOptions) Validate() error {
	switch {
	case o.Connections < 0 || o.Connections > 10_000:
		return errors.New("there can be 1 to 10,000 connections")
	case o.Depth < 0 || o.Depth > 1000:
		return errors.New("there can be 1 to 1,000 requests on the way on a connection")
	case o.Fresh && o.Depth > 1:
		return errors.New("a connection for each request leaves nothing to pipeline")
	case !(o.Rate >= 0) || o.Rate > 1e7:
		return errors.New("a rate is between 0 and 10,000,000 a second")
	case !(o.Misses >= 0) || o.Misses > 1:
		return errors.New("a share is between 0 and 1")
	}
	return nil
}

// REST returns the scenarios of the REST interface, in the order in which they are run.
func REST(o RESTOptions) []Scenario {
	return restScenarios(o, restAll)
}

var restAll = []restScenario{
	{"account", "How many requests for accounts are answered in a second, what one costs, and how that compares.", "", (*restRun).account},
	{"paced", "How long answers take at 30,000 requests a second, or those of --rate, and how that compares.", "", (*restRun).paced},
	{"proxied", "How many are answered through a proxy that says for whom it asks, of those without.", "it starts one that trusts the load to be a proxy", (*restRun).proxied},
	{"pipelined", "How many more when 16 are on the way on each connection.", "", (*restRun).pipelined},
	{"keys", "What it makes of that if a few accounts are asked for often, or accounts that do not exist.", "", (*restRun).keys},
	{"mix", "How many when other things are asked for too.", "", (*restRun).mix},
	{"lists", "How many records of lists are answered in a second, and what who asks for accounts notices.", "", (*restRun).lists},
	{"size", "What a request costs among 10,000,000 accounts, of what it costs among 100,000.", "it compares two ledgers of sizes that it chooses", (*restRun).size},
}

// restScenario is a scenario that asks.
type restScenario struct {
	name, help, own string
	run             func(r *restRun, ctx context.Context) error
}

func restScenarios(o RESTOptions, all []restScenario) (scenarios []Scenario) {
	if o.Connections == 0 {
		o.Connections = restConnections
	}
	for _, s := range all {
		scenarios = append(scenarios, Scenario{Name: s.name, Help: s.help, Own: s.own, Run: func(ctx context.Context, env *Env) (*Result, error) {
			self, err := os.Executable()
			if err != nil {
				return nil, err
			}
			r := &restRun{env: env, self: []string{self, "peer"}, o: o, result: &Result{Scenario: s.name}}
			return r.result, r.noteLimit(s.run(r, ctx))
		}})
	}
	return scenarios
}

// restRun is one run of a scenario.
type restRun struct {
	env    *Env
	self   []string // what runs peers
	o      RESTOptions
	result *Result
}

// restSubject is who is asked.
type restSubject struct {
	name    string
	address netip.AddrPort
	native  bool // it speaks the protocol of Redis
	write   func(dst []byte, a restAsk) []byte
	check   func(a restAsk, status int, head, body []byte) error
	cpu     func() (time.Duration, error) // of processors, so far; nil: nobody can tell
	stop    func() error
	script  *script
}

// choose returns what decides what each request asks for.
func (r *restRun) choose(accounts int) func(c *rand.Rand) restAsk {
	var zipf *rand.Zipf
	return func(c *rand.Rand) restAsk {
		index := uint32(c.IntN(accounts))
		if r.o.Zipf {
			if zipf == nil {
				zipf = rand.NewZipf(c, restSkew, 1, uint64(accounts-1))
			}
			index = uint32(zipf.Uint64())
		}
		if r.o.Misses > 0 && c.Float64() < r.o.Misses {
			return restAsk{askMissing, uint32(accounts) + index}
		}
		if r.o.Mix {
			return mixed(c, index)
		}
		return restAsk{askAccount, index}
	}
}

// prepare writes the script of a subject.
func (r *restRun) prepare(s *restSubject, accounts int) {
	s.script = newScript(max(1000, r.env.Scaled(restRequests)), r.choose(accounts), s.write)
}

// restMeasured is what one measurement found.
type restMeasured struct {
	*loadCounts
	server, load time.Duration // of the processors, for each answer
	costed       bool          // what the server takes is known
}

// cost says what an answer takes of the server.
func (m *restMeasured) cost() string {
	if !m.costed {
		return "unknown cost"
	}
	return fmt.Sprintf("%.2f µs", microseconds(m.server))
}

// measure asks a subject for a round.
func (r *restRun) measure(ctx context.Context, s *restSubject) (*restMeasured, error) {
	l, err := r.connect(ctx, s)
	if err != nil {
		return nil, err
	}
	defer l.close()
	warmup, err := l.phase(ctx, r.env.Duration/restWarmup)
	if err == nil {
		err = limitOf(warmup)
	}
	if err != nil {
		return nil, err
	}
	return measurePhase(ctx, l, s, r.env.Duration)
}

func (r *restRun) connect(ctx context.Context, s *restSubject) (*load, error) {
	c := loadConfig{
		Address: s.address, Connections: r.o.Connections, Depth: r.o.Depth, Fresh: r.o.Fresh, Rate: r.o.Rate,
		Script: s.script, Frame: frameHTTP, Check: s.check, Polite: true,
	}
	switch {
	case s.native:
		c.Frame = frameRedis
	case r.env.Live != nil:
		c.Frame = frameLast
	}
	addresses := min(restAddresses, (c.Connections+restPerAddress-1)/restPerAddress)
	if r.env.Live != nil {
		addresses = (c.Connections + livePerAddress - 1) / livePerAddress
	}
	for i := range addresses {
		if !s.address.Addr().IsLoopback() || !s.address.Addr().Is4() {
			break // this machine has one address there
		}
		c.Locals = append(c.Locals, netip.AddrFrom4([4]byte{127, 0, 0, byte(1 + i)}))
	}
	return newLoad(ctx, c)
}

// measurePhase asks for so long, and sees what it takes of the processors.
func measurePhase(ctx context.Context, l *load, s *restSubject, length time.Duration) (*restMeasured, error) {
	cpu := s.cpu
	if cpu == nil {
		cpu = func() (time.Duration, error) { return 0, nil }
	}
	server, err := cpu()
	if err != nil {
		return nil, err
	}
	own, err := cpuOf(os.Getpid())
	if err != nil {
		return nil, err
	}
	counts, err := l.phase(ctx, length)
	if err != nil {
		return nil, err
	}
	serverAfter, err := cpu()
	if err != nil {
		return nil, err
	}
	ownAfter, err := cpuOf(os.Getpid())
	if err != nil {
		return nil, err
	}
	if err := limitOf(counts); err != nil {
		return nil, err
	}
	n := time.Duration(counts.answered())
	if n == 0 || counts.Failed > 0 {
		return nil, fmt.Errorf("%d requests were answered, %d were not: %w", n, counts.Failed, counts.Why)
	}
	return &restMeasured{counts, (serverAfter - server) / n, (ownAfter - own) / n, s.cpu != nil}, nil
}

// note adds the figures of a round to a row.
func (m *restMeasured) note(row *Row, rate float64) {
	row.Add("requests", "k/s", m.perSecond()/1e3)
	if m.costed {
		row.Add("CPU of the server", "µs/request", microseconds(m.server))
	}
	row.Add("CPU of the load", "µs/request", microseconds(m.load))
	row.Add("p50", "ms", milliseconds(m.Latency.Quantile(0.5)))
	row.Add("p99", "ms", milliseconds(m.Latency.Quantile(0.99)))
	row.Add("p99.9", "ms", milliseconds(m.Latency.Quantile(0.999)))
	row.Add("bytes of an answer", "B", float64(m.Bytes)/float64(m.answered()))
	row.Add("not found", "%", 100*float64(m.Statuses[404])/float64(m.answered()))
	row.Add("neither found nor not found", "", float64(m.answered()-m.Statuses[200]-m.Statuses[404]))
	row.Add("answers that were checked", "", float64(m.Checked))
	if rate > 0 {
		row.Add("requests that were due", "", float64(m.answered()+m.Unsent))
		row.Add("requests that found every connection busy", "", float64(m.Late))
		row.Add(neverSent, "", float64(m.Unsent))
	}
	row.AddPercentiles("answers", m.Latency)
}

// neverSent counts what was due while more waited than could be asked.
const neverSent = "requests that were never sent"

func microseconds(d time.Duration) float64 { return d.Seconds() * 1e6 }

// startLedgerd starts a server that holds so many accounts, and that nothing is written to
// while it is asked.
func (r *restRun) startLedgerd(ctx context.Context, accounts, updates int, args ...string) (*rig, error) {
	c := feed.Config{Accounts: accounts, Updates: updates}
	if r.o.Mix {
		c.Transactions = restTransactions
	}
	rig, err := startRig(ctx, r.env, c, slices.Concat(restLimits, args)...)
	if err != nil {
		return nil, err
	}
	for range restBlocks { // there is something to ask for
		if _, err = rig.feed.Block(); err != nil {
			break
		}
	}
	if err = errors.Join(err, rig.await(ctx, rig.feed.Newest())); err != nil {
		rig.Kill()
		return nil, err
	}
	return rig, nil
}

// peers starts those peers, if any are wanted, and canned. Those that cannot be are left out.
func (r *restRun) peers(ctx context.Context, wanted []peer.RESTPeer, answer peer.Answer, accounts int) (subjects []*restSubject) {
	config := peer.RESTConfig{Self: r.self, Dir: r.env.Dir, Answer: answer, Records: peer.Records{Count: accounts, Record: recordOf}}
	all := []peer.RESTPeer{peer.Canned}
	if r.env.Peers {
		all = slices.Concat(wanted, all)
	}
	for _, p := range all {
		if p.Name == "redis" && r.o.Fresh {
			continue // who speaks its protocol keeps a connection
		}
		s, err := p.Start(ctx, config)
		if err != nil {
			r.leaveOut(p.Name, err)
			continue
		}
		r.result.Notes = append(r.result.Notes, fmt.Sprintf("%s: %s; %s", p.Name, p.About, s.Version()))
		r.result.version(p.Name, s.Version())
		subjects = append(subjects, r.peerSubject(p.Name, s, &answer))
	}
	return subjects
}

func (r *restRun) leaveOut(name string, why error) {
	r.env.Say("%s: %s is left out: %v", r.result.Scenario, name, why)
	r.result.Notes = append(r.result.Notes, fmt.Sprintf("%s is left out: %v", name, why))
}
