package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"ledgerd/bench/feed"
	"ledgerd/bench/wsclient"
)

// following has subscribers of everything who know nothing of the ledger beforehand: what they
// watch is that no update is missing or told twice, and how much later than the first of them the
// others hear that a block is complete. So it also runs against a server that somebody else feeds.
var following = Scenario{
	Name: "follow",
	Help: "Whether 100 subscribers of everything miss anything, how far apart they hear of a block, and how soon a ping is answered.",
	Run:  runFollow,
}

const (
	followSubscribers = 100
	followPings       = 100 * time.Millisecond // apart
	followPatience    = 5 * time.Second        // until the first is let in
)

func runFollow(ctx context.Context, env *Env) (*Result, error) {
	f := &followRun{env: env, result: &Result{Scenario: "follow"}, name: "ledgerd"}
	if env.Live != nil {
		f.url, f.cpu = env.Live.StreamURL(), env.Live.cpu
		f.result.Notes = append(f.result.Notes, fmt.Sprintf("The server is one that runs: %s. What comes is what happens there.", env.Live))
		return f.result, f.run(ctx)
	}
	updates := env.Scaled(networkUpdates)
	r, err := startRig(ctx, env, feed.Config{Accounts: max(env.Scaled(networkAccounts), updates), Updates: updates})
	if err != nil {
		return nil, err
	}
	defer r.Kill()
	f.url, f.cpu = r.StreamURL(), func() (time.Duration, error) { return cpuOf(r.Pid()) }
	if err := r.whileWriting(ctx, networkInterval, func() error { return f.run(ctx) }); err != nil {
		return nil, err
	}
	return f.result, r.Stop()
}

// followRun is one run of the scenario.
type followRun struct {
	env    *Env
	result *Result
	name   string
	url    string
	cpu    func() (time.Duration, error) // nil: nobody can tell
}

func (f *followRun) run(ctx context.Context) error {
	probe, err := wsclient.Dial(ctx, f.url+"?mode=none", wsclient.Options{}) // before the crowd takes all the room
	if err != nil {
		return hinted(err)
	}
	defer probe.Close()
	for round := range f.env.Rounds {
		crowd, err := follow(ctx, f.url, f.env.Scaled(followSubscribers))
		if err != nil {
			return err
		}
		if round == 0 {
			f.result.Notes = append(f.result.Notes, crowd.notes()...)
		}
		err = f.measure(ctx, crowd, probe)
		crowd.leave()
		if err != nil {
			return err
		}
		row := f.result.Row(f.name)
		faults := 0.0
		if err := crowd.check(); err != nil {
			faults = float64(crowd.faults)
			f.result.Notes = append(f.result.Notes, err.Error())
		}
		row.Add("missing, told twice or cut off", "", faults)
		f.env.Say("follow round %d: %d subscribers, %.1f k frames/s, a block within %.2f ms (p99) of the first, a ping answered in %.2f ms (p99)",
			round+1, len(crowd.members), row.last("frames"), row.last("behind the first p99"), row.last("ping p99"))
	}
	_, most := f.result.Row(f.name).figure("missing, told twice or cut off").Spread()
	f.result.Goals = []Goal{{What: "updates missing or told twice, and subscribers cut off", Value: most}}
	f.result.Notes = append(f.result.Notes, "Behind the first is the time from when the first subscriber hears that a block is complete to when another does.")
	return nil
}

// measure watches the crowd for a round.
func (f *followRun) measure(ctx context.Context, crowd *followers, probe *wsclient.Conn) error {
	cpu := f.cpu
	if cpu == nil {
		cpu = func() (time.Duration, error) { return 0, nil }
	}
	before, err := cpu()
	if err != nil {
		return err
	}
	frames, ends, began := crowd.frames.Load(), crowd.ends.Load(), time.Now()
	crowd.behind() // of before
	pings, err := f.ping(ctx, probe)
	if err != nil {
		return err
	}
	after, err := cpu()
	if err != nil {
		return err
	}
	took := time.Since(began).Seconds()
	heard, members := float64(crowd.frames.Load()-frames), float64(len(crowd.members))
	row := f.result.Row(f.name)
	row.Add("subscribers", "", members)
	row.Add("not let in", "", float64(crowd.wanted)-members)
	row.Add("handshake p50", "ms", milliseconds(crowd.handshakes.Quantile(0.5)))
	row.Add("handshake p99", "ms", milliseconds(crowd.handshakes.Quantile(0.99)))
	row.Add("frames", "k/s", heard/took/1e3)
	row.Add("updates", "k/s", heard/members/took/1e3)
	row.Add("blocks", "/s", float64(crowd.ends.Load()-ends)/members/took)
	addLatency(row, "behind the first ", crowd.behind())
	addLatency(row, "ping ", pings)
	if f.cpu != nil {
		row.Add("CPU of the server", "cores", (after-before).Seconds()/took)
	}
	return nil
}

// ping asks time and again for the duration of a round whether the server is there, as one who
// subscribes to nothing.
func (f *followRun) ping(ctx context.Context, probe *wsclient.Conn) (*Histogram, error) {
	pings := NewHistogram()
	for until := time.Now().Add(f.env.Duration); time.Now().Before(until); {
		began := time.Now()
		if err := askPong(probe); err != nil {
			return nil, err
		}
		pings.Record(time.Since(began))
		if !pause(ctx, followPings) {
			return nil, ctx.Err()
		}
	}
	return pings, nil
}

// arrivals are when the end of a block was first heard.
type arrivals struct {
	mu    sync.Mutex
	first map[blockEnd]time.Time
	spent *Histogram // how much later others heard it
}

// blockEnd is a slot_end frame. A slot that is told again after a fork has another number.
type blockEnd struct{ slot, seq uint64 }

// mostEnds is how many blocks are remembered; then all are forgotten.
const mostEnds = 4096

// hear counts how much later than the first somebody hears the end of a block.
func (a *arrivals) hear(end blockEnd, now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	first, ok := a.first[end]
	if ok {
		a.spent.Record(now.Sub(first))
		return
	}
	if len(a.first) >= mostEnds {
		clear(a.first)
	}
	a.first[end] = now
}

// followers are subscribers of everything, each of whom watches the numbers of what it is told.
type followers struct {
	wanted     int
	members    []*wsclient.Conn
	refused    map[int]int // by status
	handshakes *Histogram
	listening  sync.WaitGroup
	leaving    atomic.Bool
	frames     atomic.Int64 // updates
	ends       atomic.Int64 // blocks of which the end was told
	arrivals   arrivals

	mu     sync.Mutex
	faults int
	fault  error // the first
}

// follow lets subscribers in, as many of those wanted as the server admits.
func follow(ctx context.Context, url string, wanted int) (*followers, error) {
	f := &followers{wanted: wanted, refused: make(map[int]int), handshakes: NewHistogram()}
	f.arrivals = arrivals{first: make(map[blockEnd]time.Time), spent: NewHistogram()}
	var refusal error
	for late := time.Now().Add(followPatience); len(f.members) < wanted; {
		began := time.Now()
		conn, err := wsclient.Dial(ctx, url+"?extended=true", wsclient.Options{})
		if refused := (*wsclient.RefusedError)(nil); errors.As(err, &refused) {
			// Those who left a moment ago may still count.
			if len(f.members) == 0 && time.Now().Before(late) && pause(ctx, followPings) {
				continue
			}
			f.refused[refused.Status]++
			refusal = err
			break // whom a cap keeps out it keeps out again
		}
		if err != nil {
			f.leave()
			return nil, err
		}
		f.handshakes.Record(time.Since(began))
		f.members = append(f.members, conn)
		f.listening.Go(func() { f.listen(conn) })
	}
	if len(f.members) == 0 {
		return nil, hinted(refusal)
	}
	return f, nil
}

// hinted adds how to be let in where a limit was met.
func hinted(err error) error {
	if refused := (*wsclient.RefusedError)(nil); errors.As(err, &refused) && refused.Status == statusLimited {
		return fmt.Errorf("%w: the server limits what one client may have; %s", err, exemptHint)
	}
	return err
}

// notes say who was not let in.
func (f *followers) notes() (notes []string) {
	for status := range f.refused {
		note := fmt.Sprintf("%d of %d subscribers were let in, the next was refused with %d", len(f.members), f.wanted, status)
		if status == statusLimited {
			note += ": the server limits what one client may have; " + exemptHint
		}
		notes = append(notes, note+".")
	}
	return notes
}

// listen reads what one subscriber is told.
func (f *followers) listen(conn *wsclient.Conn) {
	var told sequence
	err := conn.Drain(func(batch []byte, _ int) {
		now, updates := time.Now(), 0
		wsclient.Each(batch, func(payload []byte) {
			if err := told.take(payload); err != nil {
				f.wrong(err)
			}
			if wsclient.IsUpdate(payload) {
				updates++
				return
			}
			if slot, ok := numberAfter(payload, `{"type":"slot_end","slot":`); ok {
				f.ends.Add(1)
				f.arrivals.hear(blockEnd{slot, told.last}, now)
			}
		})
		f.frames.Add(int64(updates))
	})
	if !f.leaving.Load() && !errors.Is(err, os.ErrDeadlineExceeded) {
		f.wrong(fmt.Errorf("a subscriber was cut off: %w", err))
	}
}

func (f *followers) wrong(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.faults++; f.fault == nil {
		f.fault = err
	}
}

// check returns the first of what was wrong.
func (f *followers) check() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.fault
}

// behind returns how much later than the first subscribers heard that blocks were complete, since it
// was asked last.
func (f *followers) behind() *Histogram {
	f.arrivals.mu.Lock()
	defer f.arrivals.mu.Unlock()
	spent := f.arrivals.spent
	f.arrivals.spent = NewHistogram()
	return spent
}

// leave ends all of them.
func (f *followers) leave() {
	f.leaving.Store(true)
	for _, conn := range f.members {
		_ = conn.Close() // the server may have been first
	}
	f.listening.Wait()
}
