package bench

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"ledgerd/bench/peer"
	"ledgerd/bench/proc"
	"ledgerd/bench/wsclient"
)

// soak runs for as long as it is told: 7,500 updates a second of a simulated ledger with
// forks, and a crowd in which somebody comes and goes at any moment, politely or not. What is
// asked is whether the server stays as it was: its memory, goroutines and files, and the
// numbers of its stream without a hole.
var soak = Scenario{
	Name: "soak",
	Help: "Hours with a crowd that comes and goes: whether memory, goroutines and files stay flat.",
	Own:  "it takes hours, forks and a ledger that it knows",
	Run:  runSoak,
}

// The ledger of the soak: 3,400 payments a second write about 7,500 accounts. Blocks are held
// for two minutes, so that everything the server keeps is as large as it gets long before the
// second quarter.
const (
	soakPayments = 3400
	soakAccounts = 20_000
	soakKeys     = 5_000 // accounts that clients know of
	soakEvery    = 10 * time.Second
	soakLeast    = 20 * time.Minute // what the quarters of a shorter run say of memory is nothing
	soakPolls    = 20               // requests a second
	soakRequests = 1 << 14          // different ones, before they come again
	soakTimeout  = time.Minute
)

// soakRole is a part of the crowd.
type soakRole struct {
	count int
	live  func(m *member, ctx context.Context) // one life, from joining to leaving
}

// soakCrowd is who is there, at full scale.
var soakCrowd = []soakRole{
	{200, (*member).hearAll},
	{500, (*member).hearSome},
	{46, (*member).follow},
	{2, (*member).witness},
	{2, (*member).lag},
	{20, (*member).conflate},
	{3, (*member).neverRead},
}

// soakRun is one run of the scenario.
type soakRun struct {
	env       *Env
	patience  float64 // of the crowd: less than 1 for a short run, in which people come and go sooner
	url, rest string
	keys      []string
	client    *http.Client

	joined, resets, silenced, resumed atomic.Uint64
	kicked, cut                       atomic.Uint64 // slow ones, by 4008 and by a reset
	gaps, compared, frames            atomic.Uint64

	watch  stutter
	mu     sync.Mutex
	faults []soakFault
}

func runSoak(ctx context.Context, env *Env) (*Result, error) {
	return (&soakRun{env: env, patience: 1}).run(ctx)
}

func (s *soakRun) run(ctx context.Context) (*Result, error) {
	env := s.env
	source := fmt.Sprintf("sim:accounts=%d,tps=%d,fork_rate=0.05,skip_rate=0.02", soakAccounts, env.Scaled(soakPayments))
	server, err := proc.Start(ctx, env.Ledgerd, []string{
		"--source", source, "--retain-slots", "300", "--retain-bytes", "64MiB", "--snapshot-interval", "2m",
	}, proc.Options{Dir: env.Dir})
	if err != nil {
		return nil, err
	}
	defer server.Kill()
	if err := server.Ready(ctx); err != nil {
		return nil, err
	}
	s.url, s.rest, s.client = server.StreamURL(), server.URL(), &http.Client{Timeout: soakTimeout}
	defer s.client.CloseIdleConnections()
	before, _, _, err := standingOf(server)
	if err == nil {
		err = s.learn(ctx)
	}
	if err != nil {
		return nil, err
	}
	samples, err := s.attend(ctx, server)
	if err != nil {
		return nil, err
	}
	s.client.CloseIdleConnections()
	after, err := settle(ctx, server, before)
	if err != nil {
		return nil, err
	}
	if err := server.Stop(); err != nil {
		s.fault("%v", err)
	}
	return s.result(samples, before, after), ctx.Err()
}

// learn hears some accounts that change.
func (s *soakRun) learn(ctx context.Context) error {
	c, err := wsclient.Dial(ctx, s.url, wsclient.Options{})
	if err != nil {
		return err
	}
	defer c.Close()
	seen := make(map[string]bool)
	want := min(soakKeys, s.env.Scaled(soakKeys)+50)
	for len(s.keys) < want {
		_ = c.NetConn().SetReadDeadline(time.Now().Add(soakTimeout)) // a socket without one fails
		frame, err := c.Next()
		if err != nil {
			return fmt.Errorf("cannot learn which accounts change: %w", err)
		}
		if key := updatedKey(frame.Payload); key != "" && !seen[key] {
			seen[key] = true
			s.keys = append(s.keys, key)
		}
	}
	return nil
}

// attend lets the crowd in, takes samples for the time of the run, and sees the crowd out.
func (s *soakRun) attend(ctx context.Context, server *proc.Server) ([]soakSample, error) {
	poll, err := s.poll(ctx)
	if err != nil {
		return nil, err
	}
	defer poll.close()
	// Not a deadline: who connects when it passes would take that for the server's fault.
	open, leave := context.WithCancel(ctx)
	over := time.AfterFunc(s.env.Duration, leave)
	defer over.Stop()
	var crowd sync.WaitGroup
	defer crowd.Wait()
	defer leave()
	crowd.Go(func() {
		if err := poll.run(open); err != nil {
			s.fault("asking came to an end: %v", err)
		}
	})
	crowd.Go(func() { s.watch.run(open) })
	number := uint64(0)
	for _, role := range soakCrowd {
		for range s.env.Scaled(role.count) {
			m := &member{soak: s, random: rand.New(rand.NewPCG(1, number))}
			number++
			crowd.Go(func() { m.live(open, role.live) })
		}
	}
	samples, err := s.sample(open, server, poll)
	leave()
	crowd.Wait()
	s.unanswered(poll.take())
	return samples, err
}

// poll returns who asks for the accounts over REST.
func (s *soakRun) poll(ctx context.Context) (*load, error) {
	address, err := addressOf(s.rest)
	if err != nil {
		return nil, err
	}
	choose := func(c *rand.Rand) restAsk { return restAsk{askAccount, uint32(c.IntN(len(s.keys)))} }
	return newLoad(ctx, loadConfig{
		Address: address, Connections: 4, Rate: soakPolls, Frame: frameLast,
		Script: newScript(soakRequests, choose, func(dst []byte, a restAsk) []byte {
			return peer.Get(dst, address.String(), "/api/account/"+s.keys[a.index], peer.AnyCoding, false)
		}),
	})
}

// unanswered notes that requests were, if some were.
func (s *soakRun) unanswered(c *loadCounts) {
	if c.Failed > 0 {
		s.fault("%d requests were not answered: %v", c.Failed, c.Why)
	}
}

// live is one life after the other.
func (m *member) live(ctx context.Context, life func(*member, context.Context)) {
	const breath = 200 * time.Millisecond
	for pause(ctx, m.about(breath)) {
		life(m, ctx)
	}
}

// result puts the quarters of the run beside each other.
func (s *soakRun) result(samples []soakSample, before, after standing) *Result {
	r := &Result{Scenario: "soak"}
	wrong, disturbed, told := s.judge()
	quarters := [4]string{"first quarter", "second quarter", "third quarter", "last quarter"}
	for i, name := range quarters {
		part := samples[i*len(samples)/4 : (i+1)*len(samples)/4]
		for _, column := range soakColumns {
			for _, sample := range part {
				r.Row(name).Add(column.name, column.unit, column.value(&sample))
			}
		}
	}
	whole := r.Row("whole run")
	whole.Add("slope of RSS behind the first quarter", "MiB/h", slope(samples[len(samples)/4:]))
	counts := map[string]uint64{
		"joined": s.joined.Load(), "reset by the client": s.resets.Load(), "fell silent": s.silenced.Load(),
		"resumed": s.resumed.Load(), "slow, closed with 4008": s.kicked.Load(),
		"slow, reset": s.cut.Load(), "gaps conflated": s.gaps.Load(),
		"answers compared": s.compared.Load(), "million frames": s.frames.Load() / 1e6, "faults": uint64(wrong), "faults while the load itself stood still": uint64(disturbed),
	}
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		whole.Add(name, "", float64(counts[name]))
	}
	r.compareStanding(before, after)
	if s.env.Duration < soakLeast {
		r.Notes = append(r.Notes, fmt.Sprintf("less than %v is no soak: memory still grows to what is kept", soakLeast))
	} else {
		for _, column := range soakColumns[:soakStanding] {
			r.Goals = append(r.Goals, Goal{
				What:  "median " + column.name + ", last quarter by second",
				Value: ratio(r.median(quarters[3], column.name), r.median(quarters[1], column.name)), Limit: 1.1,
			})
		}
	}
	r.Goals = append(r.Goals, Goal{What: "faults", Value: float64(wrong), Limit: 0})
	r.Notes = append(r.Notes, told...)
	return r
}

// csvPath is where the samples are kept.
func (s *soakRun) csvPath() string { return filepath.Join(s.env.Dir, "soak.csv") }

// median returns the median of a figure.
func (r *Result) median(subject, figure string) float64 {
	return r.Row(subject).figure(figure).Median()
}

// ratio returns a by b, 0 where there is nothing to compare with.
func ratio(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}
