package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"ledgerd/bench/feed"
	"ledgerd/bench/wsclient"
)

// stalled has 1,000 subscribers at the pace of a busy ledger, and by turns one more who stops
// reading, another one as soon as the server has dropped the first. What is asked is whether
// the others notice, and what becomes of that one.
var stalled = Scenario{
	Name: "stalled",
	Help: "What 1,000 subscribers notice of one more that stops reading, and what becomes of it.",
	Own:  "it must know when each block was due, and looks at the server's sockets",
	Run:  runStalled,
}

const (
	stalledSubscribers = 1000
	stalledUpdates     = 3000
	stalledInterval    = 400 * time.Millisecond // 7,500 updates a second
	stalledAccounts    = 100_000
	stalledPairs       = 3
	// stalledWarmup is how many blocks come before anybody listens: so many that what the server
	// keeps of them grows no more.
	stalledWarmup = 200
	// stalledGrace is the longest that a phase waits for a stalled reader to be gone.
	stalledGrace = 60 * time.Second
)

// stalledRun is one run of the scenario.
type stalledRun struct {
	*rig
	env     *Env
	pairs   int // how often in a round one stalls and then nobody does
	diag    *socketDiag
	readers *punctual
	result  *Result
}

func runStalled(ctx context.Context, env *Env) (*Result, error) {
	return (&stalledRun{env: env, pairs: stalledPairs, result: &Result{Scenario: "stalled"}}).run(ctx, stalledInterval)
}

func (s *stalledRun) run(ctx context.Context, interval time.Duration) (r *Result, err error) {
	if s.diag, err = openSocketDiag(); err != nil {
		return nil, err
	}
	defer s.diag.close()
	s.rig, err = startRig(ctx, s.env, feed.Config{Accounts: stalledAccounts, Updates: stalledUpdates}, "--retain-slots", "100")
	if err != nil {
		return nil, err
	}
	defer s.Kill()
	if err := s.pace(ctx, 0, s.env.Scaled(stalledWarmup)); err != nil {
		return nil, err
	}
	before, _, _, err := standingOf(s.Server)
	if err != nil {
		return nil, err
	}
	if err := s.attend(ctx, interval); err != nil {
		return nil, err
	}
	after, err := settle(ctx, s.Server, before)
	if err != nil {
		return nil, err
	}
	s.goals(before, after)
	return s.result, s.Stop()
}

// attend lets the subscribers in, measures all rounds, and sees everybody out.
func (s *stalledRun) attend(ctx context.Context, interval time.Duration) (err error) {
	if s.readers, err = newPunctual(ctx, s.StreamURL(), s.feed, s.env.Scaled(stalledSubscribers)); err != nil {
		return err
	}
	defer s.readers.close()
	if err := s.whileWriting(ctx, interval, func() error { return s.rounds(ctx, interval) }); err != nil {
		return err
	}
	return s.readers.complete(ctx)
}

func (s *stalledRun) rounds(ctx context.Context, interval time.Duration) error {
	if err := s.readers.heard(ctx, s.readers.first+2); err != nil { // buffers grow, caches fill
		return err
	}
	for round := range s.env.Rounds {
		quiet, alone := newPhase(), newPhase()
		for range s.pairs {
			var failed error
			began := time.Now()
			err := s.readers.during(ctx, alone, func() {
				for failed == nil && time.Since(began) < s.env.Duration {
					failed = s.stall(ctx, interval)
				}
			})
			if err := errors.Join(failed, err, s.note("one stalls")); err != nil {
				return err
			}
			// As long, so that both have as many blocks for a worst one to be among.
			took := time.Since(began)
			err = s.readers.during(ctx, quiet, func() { pause(ctx, took) })
			if err := errors.Join(err, s.note("nobody stalls")); err != nil {
				return err
			}
		}
		for _, p := range []struct {
			subject string
			*phase
		}{{"nobody stalls", quiet}, {"one stalls", alone}} {
			all := p.merged()
			row := s.result.Row(p.subject)
			row.Add("p50", "ms", milliseconds(all.Quantile(0.5)))
			row.Add("p99", "ms", milliseconds(all.Quantile(0.99)))
			row.Add("longest", "ms", milliseconds(all.Quantile(1)))
			row.Add("frames", "M", float64(all.Count())/1e6)
		}
		without, with := quiet.merged().Quantile(0.99), alone.merged().Quantile(0.99)
		s.result.Row("one stalls").Add("p99, of that when nobody stalls", "×", ratio(float64(with), float64(without)))
		s.env.Say("stalled round %d: p99 %v when nobody stalls, %v when one does", round+1, without, with)
	}
	return nil
}

// note notes how the server stands at the end of a phase.
func (s *stalledRun) note(subject string) error {
	now, _, _, err := standingOf(s.Server)
	if err != nil {
		return err
	}
	row := s.result.Row(subject)
	row.Add("RSS", "MiB", now.rss)
	row.Add("connections afterwards", "", now.connections)
	row.Add("files afterwards", "", now.files)
	return nil
}

// stall lets one more subscriber in, which reads a little and then nothing, and watches its
// socket at the server until it is gone.
func (s *stalledRun) stall(ctx context.Context, interval time.Duration) error {
	const window = 16 << 10 // the less the client's kernel takes, the sooner the server's is full
	c, err := wsclient.Dial(ctx, s.StreamURL(), wsclient.Options{ReceiveBuffer: window})
	if err != nil {
		return err
	}
	defer reset(c)
	_ = c.NetConn().SetReadDeadline(time.Now().Add(stalledGrace)) // a socket without one fails
	if _, err := c.Next(); err != nil {
		return fmt.Errorf("cannot read before stalling: %w", err)
	}
	began := time.Now()
	refused, gone, err := watchStall(ctx, s.diag, c, 3*interval)
	if err != nil {
		return err
	}
	row := s.result.Row("the stalled one")
	row.Add("until its socket takes no more", "s", refused.Sub(began).Seconds())
	row.Add("gone after that", "s", gone.Sub(refused).Seconds())
	return nil
}

// watchStall looks at the server's side of a connection that nobody reads: it returns when the
// socket took its last byte, and when it was gone. Only a socket that takes nothing for as long
// as still counts as full; the others wait for the next block.
func watchStall(ctx context.Context, diag *socketDiag, c *wsclient.Conn, still time.Duration) (refused, gone time.Time, err error) {
	const look = 5 * time.Millisecond
	local, remote := addrPort(c.NetConn().RemoteAddr()), addrPort(c.NetConn().LocalAddr())
	held := uint32(0)
	for until := time.Now().Add(stalledGrace); pause(ctx, look); {
		now := time.Now()
		n, err := diag.unacknowledged(local, remote)
		switch {
		case errors.Is(err, errNoSocket) && now.Sub(refused) < still:
			return refused, now, errors.New("the server dropped a stalled reader whose socket was not full")
		case errors.Is(err, errNoSocket):
			return refused, now, nil
		case err != nil:
			return refused, now, err
		case n != held:
			held, refused = n, now
		case now.After(until):
			return refused, now, fmt.Errorf("a stalled reader is still connected after %v, %d bytes wait for it", stalledGrace, n)
		}
	}
	return refused, gone, ctx.Err()
}

func (s *stalledRun) goals(before, after standing) {
	r := s.result
	soonest, latest := r.Row("the stalled one").figure("gone after that").Spread()
	r.Goals = append(r.Goals,
		Goal{What: "p99 of the others, of that when nobody stalls", Value: r.median("one stalls", "p99, of that when nobody stalls"), Limit: 1.1},
		// The server looks ten times a second whether anything was taken; the watcher is late by a
		// few milliseconds.
		Goal{What: "seconds until the first of the stalled was gone", Value: soonest, Limit: 4.9, Least: true},
		Goal{What: "seconds until the last of the stalled was gone", Value: latest, Limit: 5.6},
		Goal{What: "RSS, of that when nobody stalls", Value: ratio(r.median("one stalls", "RSS"), r.median("nobody stalls", "RSS")), Limit: 1.1},
		Goal{What: "connections left behind by the stalled", Value: r.median("one stalls", "connections afterwards") - r.median("nobody stalls", "connections afterwards"), Limit: 0},
		Goal{What: "files left behind by the stalled", Value: r.median("one stalls", "files afterwards") - r.median("nobody stalls", "files afterwards"), Limit: 0})
	r.compareStanding(before, after)
}
