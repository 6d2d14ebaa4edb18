package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"ledgerd/bench/peer"
	"ledgerd/bench/proc"
)

// flow is what was delivered to all subscribers together in a time, and what it took.
type flow struct {
	time          time.Duration
	frames, bytes int64
	server, load  time.Duration // on a processor
}

func (f *flow) framesPerSecond() float64 { return float64(f.frames) / f.time.Seconds() }
func (f *flow) bytesPerSecond() float64  { return float64(f.bytes) / f.time.Seconds() }

// audience is all subscribers of a server, and who publishes to them.
type audience struct {
	server    broadcaster
	giveUp    context.CancelFunc // ends the server
	seats     []*seat
	listening sync.WaitGroup
	published int64 // frames that everybody shall hear
	window    int64 // frames that the slowest may be behind
}

// seat is one subscriber's count.
type seat struct {
	subscriber    peer.Subscriber
	frames, bytes atomic.Int64
	ended         atomic.Pointer[error] // why it hears no more
}

// attend lets the subscribers in and publishes for a while; it returns what flowed, without
// what came before everything ran and after the last block was published. Everybody has heard
// everything when it returns.
func (a *audience) attend(ctx context.Context, count int, duration time.Duration) (*flow, error) {
	for range count {
		if err := a.admit(ctx); err != nil {
			return nil, err
		}
	}
	// The first batch tells how long a frame is.
	if err := errors.Join(a.publish(), a.await(ctx, 0)); err != nil {
		return nil, err
	}
	frames, bytes := a.heard()
	a.window = max(firehoseWindow*frames/bytes, int64(a.server.BatchFrames()))
	if err := a.publishFor(ctx, min(duration/4, 2*time.Second)); err != nil { // buffers grow, caches fill
		return nil, err
	}
	before, err := a.now()
	if err != nil {
		return nil, err
	}
	began := time.Now()
	if err := a.publishFor(ctx, duration); err != nil {
		return nil, err
	}
	after, err := a.now()
	if err != nil {
		return nil, err
	}
	measured := &flow{
		time.Since(began), after.frames - before.frames, after.bytes - before.bytes,
		after.server - before.server, after.load - before.load,
	}
	return measured, a.await(ctx, 0)
}

// admit lets one subscriber in.
func (a *audience) admit(ctx context.Context) error {
	subscriber, err := a.server.Dial(ctx)
	if err != nil {
		return err
	}
	s := &seat{subscriber: subscriber}
	a.seats = append(a.seats, s)
	a.listening.Go(func() {
		err := subscriber.Drain(func(bytes, frames int) {
			s.bytes.Add(int64(bytes))
			s.frames.Add(int64(frames))
		})
		s.ended.Store(&err)
	})
	return nil
}

func (a *audience) publish() error {
	stuck := time.AfterFunc(firehosePatience, a.giveUp)
	err := a.server.Publish()
	if !stuck.Stop() {
		return errors.Join(fmt.Errorf("the server has taken nothing for %v", firehosePatience), err)
	}
	if err != nil {
		return err
	}
	a.published += int64(a.server.BatchFrames())
	return nil
}

// publishFor publishes for a while, one batch at least.
func (a *audience) publishFor(ctx context.Context, duration time.Duration) error {
	for until := time.Now().Add(duration); ; {
		if err := errors.Join(a.publish(), a.await(ctx, a.window)); err != nil {
			return err
		}
		if time.Now().After(until) {
			return nil
		}
	}
}

// await waits until the slowest subscriber is no more than so many frames behind.
func (a *audience) await(ctx context.Context, behind int64) error {
	var last int64
	moved := time.Now()
	for {
		slowest, err := a.slowest()
		switch {
		case err != nil:
			return err
		case slowest >= a.published-behind:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case slowest > last:
			last, moved = slowest, time.Now()
		case time.Since(moved) > firehosePatience:
			return fmt.Errorf("a subscriber has heard %d of %d frames, and nothing for %v", slowest, a.published, firehosePatience)
		}
		time.Sleep(time.Millisecond)
	}
}

// slowest returns how many frames everybody has heard, and an error if somebody hears no more.
func (a *audience) slowest() (int64, error) {
	least := a.published
	for _, s := range a.seats {
		if ended := s.ended.Load(); ended != nil {
			return 0, fmt.Errorf("a subscriber was dropped after %d of %d frames: %w", s.frames.Load(), a.published, *ended)
		}
		least = min(least, s.frames.Load())
	}
	return least, nil
}

// heard returns what all have heard together.
func (a *audience) heard() (frames, bytes int64) {
	for _, s := range a.seats {
		frames += s.frames.Load()
		bytes += s.bytes.Load()
	}
	return frames, bytes
}

// now returns what was delivered and used so far.
func (a *audience) now() (f flow, err error) {
	f.frames, f.bytes = a.heard()
	server, err := proc.UsageOf(a.server.Pid())
	if err != nil {
		return f, err
	}
	load, err := proc.UsageOf(os.Getpid())
	f.server, f.load = server.CPU(), load.CPU()
	return f, err
}

// leave ends all subscribers.
func (a *audience) leave() {
	for _, s := range a.seats {
		_ = s.subscriber.Close() // the server may have been first
	}
	a.listening.Wait()
}

// check returns an error unless everybody has heard every frame exactly once. Nobody listens
// any more.
func (a *audience) check() error {
	for i, s := range a.seats {
		if heard := s.frames.Load(); heard != a.published {
			return fmt.Errorf("subscriber %d has heard %d frames of %d", i, heard, a.published)
		}
	}
	return nil
}
