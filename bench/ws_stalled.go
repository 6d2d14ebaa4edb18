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
	"ledgerd/bench/listen"
	"ledgerd/bench/report"
)

const (
	stalledSubscribers = 1000
	stalledAccounts    = 100_000
	// stalledWarmup is how many blocks come before anybody subscribes: so many that what the server keeps of them grows no more.
	stalledWarmup = 200
	// stalledGrace is the longest that a measurement waits for a stalled reader to be gone.
	stalledGrace = time.Minute
)

// runStalled has subscribers at the pace of a busy network, and by turns one more who stops reading, another one as soon as the
// server has dropped the first.
func runStalled(ctx context.Context, r *Run) error {
	r.noteSample()
	g, err := startRig(ctx, r, feed.Config{Accounts: stalledAccounts, Updates: networkUpdates}, "--retain-slots", "100")
	if err == nil {
		err = g.pace(ctx, 0, r.Scaled(stalledWarmup))
	}
	if err != nil {
		return err
	}
	before, err := standingOf(g.Server)
	if err != nil {
		return err
	}
	first, count := g.feed.Newest(), r.Scaled(stalledSubscribers)
	pool, err := g.subscribe(ctx, r, listen.Config{Sockets: count})
	if err != nil {
		return err
	}
	err = g.whileWriting(ctx, networkInterval, func() error {
		warm := int64(networkWarmup * networkUpdates)
		if err := pool.Await(ctx, func(int) int64 { return warm }); err != nil {
			return err
		}
		return turns(r, []string{"nobody-stalls", "one-stalls"}, func(subject string) error {
			return g.measureStalled(ctx, r, pool, subject)
		})
	})
	if err == nil {
		err = settle(ctx, pool, count, g.everything(first))
	}
	if err != nil {
		return err
	}
	pool.Close()
	return g.recordLeft(ctx, r, before)
}

// measureStalled records how late updates are while nobody stalls, or until one who stalls is gone.
func (g *rig) measureStalled(ctx context.Context, r *Run, pool *listen.Pool, subject string) error {
	before, err := standingOf(g.Server)
	if err != nil {
		return err
	}
	pool.Times() // those of what came before
	var gone time.Duration
	if subject == "one-stalls" {
		gone, err = g.stall(ctx)
	} else {
		err = rest(ctx, max(r.Duration, 5*networkInterval)) // on a busy machine a shorter one may see no block at all
	}
	if err != nil {
		return err
	}
	late := pool.Times()
	after, err := standingOf(g.Server)
	if err != nil {
		return err
	}
	r.Record(subject, int(late.Count()), append(times("", late), report.Figure{Unit: "rss-MiB", Value: after.rssMiB()})...)
	if subject == "one-stalls" {
		r.Record("stalled-reader", 1, append(after.left(before), report.Figure{Unit: "gone-s", Value: gone.Seconds()})...)
	}
	return nil
}

// stall connects one more subscriber, which reads a little and then nothing, and watches its socket at the server until it is
// gone. It returns how long that took from when the socket was full: took nothing for longer than a block takes.
func (g *rig) stall(ctx context.Context) (gone time.Duration, err error) {
	const window = 16 << 10 // the less the client's kernel takes, the sooner the server's is full
	const look = 20 * time.Millisecond
	c, err := listen.Dial(ctx, g.StreamURL(), listen.Options{ReceiveBuffer: window})
	if err != nil {
		return 0, err
	}
	defer func() { _ = c.NetConn().Close() }() // with bytes that nobody read, which resets it
	if _, err := c.Next(); err != nil {
		return 0, fmt.Errorf("cannot read before stalling: %w", err)
	}
	server, client := c.NetConn().RemoteAddr().(*net.TCPAddr), c.NetConn().LocalAddr().(*net.TCPAddr)
	began := time.Now()
	for refused, held := began, int64(-1); time.Since(began) < stalledGrace; {
		queued, there, err := sendQueue(server, client)
		now := time.Now()
		switch {
		case err != nil:
			return 0, err
		case !there && now.Sub(refused) < 3*networkInterval:
			return 0, errors.New("the server dropped a stalled reader whose socket was not full")
		case !there:
			return now.Sub(refused), nil
		case queued != held:
			held, refused = queued, now
		}
		if err := rest(ctx, look); err != nil {
			return 0, err
		}
	}
	return 0, fmt.Errorf("a stalled reader is still connected after %v", stalledGrace)
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
