package bench

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"ledgerd/bench/feed"
	"ledgerd/bench/latency"
	"ledgerd/bench/listen"
	"ledgerd/bench/report"
)

const (
	stalledSubscribers = 1000
	stalledAccounts    = 100_000
	stalledPairs       = 3 // how often in a round one stalls and then nobody does
	// stalledWarmup is how many blocks come before anybody subscribes: so many that what the server keeps of them grows no more.
	stalledWarmup = 200
	// stalledGrace is the longest that a phase waits for a stalled reader to be gone.
	stalledGrace = time.Minute
)

// runStalled has subscribers at the pace of a busy network, and by turns one more who stops reading, another one as soon as the
// server has dropped the first.
func runStalled(ctx context.Context, r *Run) error {
	g, err := startRig(ctx, r, feed.Config{Accounts: stalledAccounts, Updates: networkUpdates}, "--retain-slots", "100")
	if err != nil {
		return err
	}
	defer g.Kill()
	if err := g.pace(ctx, 0, r.Scaled(stalledWarmup)); err != nil {
		return err
	}
	before, err := g.standing()
	if err != nil {
		return err
	}
	first, count := g.feed.Newest(), r.Scaled(stalledSubscribers)
	pool, err := g.subscribe(ctx, listen.Config{Sockets: count})
	if err != nil {
		return err
	}
	defer pool.Close()
	err = g.whileWriting(ctx, networkInterval, func() error {
		warm := int64(networkWarmup * networkUpdates)
		if err := pool.Await(ctx, func(int) int64 { return warm }); err != nil {
			return err
		}
		for range r.Rounds {
			if err := (&stall{Run: r, rig: g, pool: pool}).round(ctx); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := settle(ctx, pool, count, g.everything(first)); err != nil {
		return err
	}
	pool.Close()
	if err := g.recordLeft(ctx, r, before); err != nil {
		return err
	}
	return g.Stop()
}

// stall is one round of the scenario.
type stall struct {
	*Run
	*rig
	pool              *listen.Pool
	full, least, most time.Duration // until a reader's socket took no more, and until it was gone after that: the first and the last
	readers           int
}

// round has phases in which one stalls and phases in which nobody does, which last as long.
func (s *stall) round(ctx context.Context) error {
	stalls, quiet := latency.New(), latency.New()
	var with, without standing
	for range s.Scaled(stalledPairs) {
		began := time.Now()
		s.pool.Times()
		for s.readers == 0 || time.Since(began) < s.Duration {
			if err := s.stall(ctx); err != nil {
				return err
			}
		}
		stalls.Merge(s.pool.Times())
		var err1, err2, err3 error
		with, err1 = s.standing()
		err2 = rest(ctx, time.Since(began))
		quiet.Merge(s.pool.Times())
		without, err3 = s.standing()
		if err := errors.Join(err1, err2, err3); err != nil {
			return err
		}
	}
	left := with.left(without)
	rss := func(s standing) report.Figure { return report.Figure{Unit: "rss-MiB", Value: s.rssMiB} }
	return errors.Join(
		s.Record("nobody-stalls", int(quiet.Count()), append(times("", quiet), rss(without))...),
		s.Record("one-stalls", int(stalls.Count()), append(times("", stalls), rss(with))...),
		s.Record("stalled-reader", s.readers, append(left, report.Figure{Unit: "full-s", Value: s.full.Seconds() / float64(s.readers)},
			report.Figure{Unit: "first-gone-s", Value: s.least.Seconds()}, report.Figure{Unit: "last-gone-s", Value: s.most.Seconds()})...))
}

// stall connects one more subscriber, which reads a little and then nothing, and watches its socket at the server until it is
// gone. Only a socket that takes nothing for longer than a block takes counts as full.
func (s *stall) stall(ctx context.Context) error {
	const window = 16 << 10 // the less the client's kernel takes, the sooner the server's is full
	const look = 20 * time.Millisecond
	c, err := listen.Dial(ctx, s.StreamURL(), listen.Options{ReceiveBuffer: window})
	if err != nil {
		return err
	}
	defer c.Reset()
	if _, err := c.Next(); err != nil {
		return fmt.Errorf("cannot read before stalling: %w", err)
	}
	server, client := c.NetConn().RemoteAddr().(*net.TCPAddr), c.NetConn().LocalAddr().(*net.TCPAddr)
	began := time.Now()
	for refused, held := began, int64(-1); time.Since(began) < stalledGrace; {
		queued, there, err := sendQueue(server, client)
		now := time.Now()
		switch {
		case err != nil:
			return err
		case !there && now.Sub(refused) < 3*networkInterval:
			return errors.New("the server dropped a stalled reader whose socket was not full")
		case !there:
			gone := now.Sub(refused)
			if s.readers == 0 || gone < s.least {
				s.least = gone
			}
			s.readers, s.most, s.full = s.readers+1, max(s.most, gone), s.full+refused.Sub(began)
			return nil
		case queued != held:
			held, refused = queued, now
		}
		if err := rest(ctx, look); err != nil {
			return err
		}
	}
	return fmt.Errorf("a stalled reader is still connected after %v", stalledGrace)
}

// sendQueue returns how many bytes a server has written that a client has not taken, and whether the server has their connection
// at all. One that waits for nothing more than time is none.
func sendQueue(server, client *net.TCPAddr) (queued int64, there bool, err error) {
	table, err := os.ReadFile("/proc/net/tcp")
	if err != nil {
		return 0, false, fmt.Errorf("cannot read the connections of this machine: %w", err)
	}
	at := func(a *net.TCPAddr) string { // as the kernel writes it: the address as a number of this machine
		return fmt.Sprintf("%08X:%04X", binary.NativeEndian.Uint32(a.IP.To4()), a.Port)
	}
	_, rest, found := bytes.Cut(table, []byte(" "+at(server)+" "+at(client)+" "))
	if !found {
		return 0, false, nil
	}
	const timeWait, closed = 6, 7 // include/net/tcp_states.h
	var state int
	if _, err := fmt.Sscanf(string(rest[:min(len(rest), 20)]), "%x %x:", &state, &queued); err != nil {
		return 0, false, fmt.Errorf("cannot read the connection %.40q: %w", rest, err)
	}
	return queued, state != timeWait && state != closed, nil
}
