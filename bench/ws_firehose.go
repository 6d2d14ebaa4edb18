package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"ledgerd/bench/feed"
	"ledgerd/bench/listen"
	"ledgerd/bench/peer"
	"ledgerd/bench/report"
)

const (
	firehoseSubscribers = 500
	// firehoseAccounts is how many accounts take turns: those of a busy ledger that are written again and again.
	firehoseAccounts = 10_000
	// firehoseBatch is how many accounts a block updates: so many that fsyncs keep up, and few enough for a block to be news.
	firehoseBatch = 1000
	// firehoseWindow is how many batches the publisher runs ahead of the slowest subscriber, of 140 KB each: enough for nobody to
	// wait for a block, far within what every server keeps for a subscriber, and for all together less than what makes a kernel
	// take back room from its sockets.
	firehoseWindow = 15
	// firehosePatience is how much longer than it publishes a round may take: a server that takes nothing is then ended.
	firehosePatience = time.Minute
)

// runFirehose has subscribers that want everything, as fast as it goes: a closed loop, in which blocks are published as long as the
// slowest subscriber is not too far behind.
func runFirehose(ctx context.Context, r *Run) {
	r.Note("every 100th subscriber of ledgerd, and four at least, reads frames; the others count bytes, which must be as many")
	r.Note("raw writes blocks of 64 KiB to plain sockets, which is the ceiling here; nats is nats-server and its text protocol; of both " +
		"the subscribers count bytes")
	subjects := []peer.Peer{{Name: "ledgerd"}}
	if r.Peers {
		subjects = append(subjects, peer.Peers...)
	}
	peersInTurns(ctx, r, subjects, func(p *peer.Peer) { measureFirehose(ctx, r, p) })
}

// peersInTurns is turns of ledgerd and peers. A peer that fails is left out from then on: the n-th figure of a subject is that of the n-th round,
// and ratios are of one round.
func peersInTurns(ctx context.Context, r *Run, subjects []peer.Peer, measure func(p *peer.Peer)) {
	failed := map[string]bool{}
	turns(r, subjects, func(p peer.Peer) {
		if failed[p.Name] {
			return
		}
		err := try(func() { measure(&p) })
		if p.Name == "ledgerd" || ctx.Err() != nil {
			check(err)
		} else if err != nil {
			failed[p.Name] = true
			r.Note("%s is left out from here on: %v", p.Name, err)
		}
	})
}

// hose is a server that tells everybody everything, and its subscribers.
type hose struct {
	server interface {
		Pid() int
		Stop() error
	}
	publish   func() error // a batch
	batch     int64        // frames of it
	pool      *listen.Pool
	published int64 // frames that every subscriber must receive
}

// startHose starts a server, and connects subscribers to it.
func startHose(ctx context.Context, r *Run, p *peer.Peer, subscribers int) *hose {
	if p.Name == "ledgerd" {
		g := startRig(ctx, r, feed.Config{Accounts: firehoseAccounts, Updates: firehoseBatch})
		publish := func() error {
			_, err := g.feed.Block()
			return err
		}
		return &hose{server: g, publish: publish, batch: firehoseBatch, pool: r.open(ctx, listen.Config{
			Sockets: subscribers, URL: g.StreamURL(), FrameBytes: literalBytes, // most of them only count bytes
		})}
	}
	messages := make([][]byte, firehoseBatch)
	for i := range messages {
		messages[i] = literal(i)
	}
	server := got(p.Start(ctx, peer.Config{Self: r.Self, Dir: r.Dir, Messages: messages}))
	pool := r.open(ctx, listen.Config{
		Sockets: subscribers, Connect: func() (listen.Stream, error) { return server.Dial(ctx) },
	})
	return &hose{server: server, publish: server.Publish, batch: int64(server.BatchFrames), pool: pool}
}

// measureFirehose runs one subject for a round.
func measureFirehose(ctx context.Context, r *Run, p *peer.Peer) {
	ctx, cancel := context.WithTimeout(ctx, 2*r.Duration+firehosePatience)
	defer cancel() // which ends the server
	count := r.Scaled(firehoseSubscribers)
	h := startHose(ctx, r, p, count)
	u, delivered, err := h.measure(ctx, r.Duration)
	check(errors.Join(err, h.server.Stop()))
	h.pool.Close()
	if received := h.pool.Counts().Frames; received != h.published*int64(count) { // also what came while the server stopped
		check(fmt.Errorf("%d subscribers received %d frames, not %d each", count, received, h.published))
	}
	per := func(n int64) float64 { return float64(n) / u.took.Seconds() }
	figures := []report.Figure{{Unit: "B/s", Value: per(delivered.Bytes)}}
	if p.Name != "raw" {
		figures = append(figures, report.Figure{Unit: "frames/s", Value: per(delivered.Frames)})
	}
	r.Record(p.Name, int(delivered.Frames), append(figures, u.cores("server", "load")...)...)
}

// measure publishes for a while, and returns what was delivered meanwhile: without what came before everything ran and after the
// last block was published. Every subscriber has received everything when it returns.
func (h *hose) measure(ctx context.Context, duration time.Duration) (u used, delivered listen.Counts, err error) {
	err = try(func() {
		h.publishFor(ctx, min(duration/4, 2*time.Second)) // buffers grow, caches fill
		before := h.pool.Counts()
		u = metered(func() {
			h.publishFor(ctx, duration)
			delivered = h.pool.Counts()
		}, []int{h.server.Pid()}, loader)
		delivered.Frames, delivered.Bytes = delivered.Frames-before.Frames, delivered.Bytes-before.Bytes
		h.await(ctx, 0)
	})
	return u, delivered, err
}

// publishFor publishes for a while, one batch at least, as fast as the slowest subscriber reads.
func (h *hose) publishFor(ctx context.Context, duration time.Duration) {
	for until, over := time.Now().Add(duration), false; !over; over = time.Now().After(until) {
		if err := h.publish(); err != nil {
			check(errors.Join(err, ctx.Err()))
		}
		h.published += h.batch
		h.await(ctx, firehoseWindow)
	}
}

// await waits until no subscriber is further behind than some batches.
func (h *hose) await(ctx context.Context, behind int64) {
	check(h.pool.Await(ctx, func(int) int64 { return h.published - behind*h.batch }))
}
