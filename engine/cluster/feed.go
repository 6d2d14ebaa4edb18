package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

const (
	// feedBytes is how much is on its way to a follower that is busy.
	feedBytes     = 16 << 20
	feedExpiry    = 10 * time.Second // a server forgets a request after that; it is renewed before
	feedHeartbeat = time.Second      // two that do not come and the feed is opened anew
	// feedThreshold is when a server forgets a follower that vanished.
	feedThreshold = 30 * time.Second
	queued        = 64 // messages between the goroutine that receives and the one that takes
)

// message is one of the stream.
type message struct {
	sequence uint64
	data     []byte
}

// feed receives the stream's messages from one on, in order, without gaps.
type feed struct {
	iterator jetstream.MessagesContext
	messages chan message
	err      error // why it ended; after messages is closed
	stop     context.CancelFunc
	ended    chan struct{}
	delete   func()
}

// openFeed makes a consumer that keeps nothing on disk and awaits no acknowledgement.
func (c *Cluster) openFeed(ctx context.Context, stream jetstream.Stream, first uint64) (*feed, error) {
	consumer, err := stream.CreateConsumer(ctx, jetstream.ConsumerConfig{
		Description: "follows the log for " + c.config.NodeID, DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: first,
		AckPolicy: jetstream.AckNonePolicy, MemoryStorage: true, Replicas: 1, InactiveThreshold: feedThreshold,
	})
	if err != nil {
		return nil, fmt.Errorf("cannot make a consumer: %w", err)
	}
	iterator, err := consumer.Messages(jetstream.PullMaxMessagesWithBytesLimit(1024, feedBytes), jetstream.PullExpiry(feedExpiry),
		jetstream.PullHeartbeat(feedHeartbeat), jetstream.WithMessagesErrOnMissingHeartbeat(true))
	if err != nil {
		return nil, fmt.Errorf("cannot receive: %w", err)
	}
	name := consumer.CachedInfo().Name
	feedCtx, stop := context.WithCancel(c.ctx)
	f := &feed{iterator: iterator, messages: make(chan message, queued), stop: stop, ended: make(chan struct{})}
	f.delete = func() {
		ctx, cancel := context.WithTimeout(context.Background(), requestPatience)
		defer cancel()
		_ = stream.DeleteConsumer(ctx, name) // the server forgets it after a while
	}
	go f.receive(feedCtx, first)
	return f, nil
}

// receive passes messages on until there is a gap, the feed breaks, or it is stopped.
func (f *feed) receive(ctx context.Context, next uint64) {
	defer close(f.ended)
	defer close(f.messages)
	for {
		m, err := f.iterator.Next(jetstream.NextContext(ctx))
		if err != nil {
			f.err = err
			return
		}
		meta, err := m.Metadata()
		if err != nil {
			f.err = err
			return
		}
		if meta.Sequence.Stream != next {
			f.err = fmt.Errorf("message %d came where %d comes next", meta.Sequence.Stream, next)
			return
		}
		next++
		select {
		case f.messages <- message{meta.Sequence.Stream, m.Data()}:
		case <-ctx.Done():
			f.err = ctx.Err()
			return
		}
	}
}

// next returns the next message. It returns errInterrupted when wake says so or patience, where it is not 0, is over.
func (f *feed) next(ctx context.Context, wake <-chan struct{}, patience time.Duration) (message, error) {
	select {
	case m, ok := <-f.messages:
		return f.got(m, ok)
	default:
	}
	var over <-chan time.Time
	if patience > 0 {
		timer := time.NewTimer(patience)
		defer timer.Stop()
		over = timer.C
	}
	select {
	case m, ok := <-f.messages:
		return f.got(m, ok)
	case <-wake:
		return message{}, errInterrupted
	case <-over:
		return message{}, errInterrupted
	case <-ctx.Done():
		return message{}, ctx.Err()
	}
}

func (f *feed) got(m message, ok bool) (message, error) {
	if !ok {
		return message{}, errors.Join(errBroken, f.err)
	}
	return m, nil
}

var errBroken = errors.New("receiving ended")

// close ends the feed and awaits that.
func (f *feed) close() {
	f.stop()
	f.iterator.Stop()
	<-f.ended
	f.delete()
}
