package cluster

import (
	"context"
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
)

// feed receives the stream's messages from one on, in order. Some may be missing: then nothing that comes after is of use.
type feed struct {
	messages chan jetstream.Msg
	broken   chan error // holds one that says why nothing comes any more
	close    func()     // ends the feed and awaits that
}

// openFeed makes a consumer that keeps nothing on disk and awaits no acknowledgement. It is no OrderedConsumer: that one
// would begin anew by itself, in a stream that nobody looked at, in attempts of 10 s that cannot be interrupted, and it goes
// on after a gap between sequences of the stream.
func (c *Cluster) openFeed(ctx context.Context, stream jetstream.Stream, first uint64) (*feed, error) {
	consumer, err := stream.CreateConsumer(ctx, jetstream.ConsumerConfig{
		Description: "follows the log for " + c.config.NodeID, DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: first,
		AckPolicy: jetstream.AckNonePolicy, MemoryStorage: true, Replicas: 1, InactiveThreshold: feedThreshold,
	})
	if err != nil {
		return nil, fmt.Errorf("cannot make a consumer: %w", err)
	}
	stopped, stop := context.WithCancel(c.ctx)
	f := &feed{messages: make(chan jetstream.Msg), broken: make(chan error, 1)}
	receiving, err := consumer.Consume(func(m jetstream.Msg) {
		select {
		case f.messages <- m:
		case <-stopped.Done():
		}
	}, jetstream.PullMaxMessagesWithBytesLimit(1024, feedBytes),
		jetstream.PullExpiry(feedExpiry), jetstream.PullHeartbeat(feedHeartbeat),
		jetstream.ConsumeErrHandler(func(_ jetstream.ConsumeContext, err error) {
			select {
			case f.broken <- err:
			default:
			}
		}))
	if err != nil {
		stop()
		return nil, fmt.Errorf("cannot receive: %w", err)
	}
	f.close = func() {
		stop()
		receiving.Stop()
		<-receiving.Closed()
		ctx, cancel := context.WithTimeout(context.Background(), requestTimeout)
		defer cancel()
		_ = stream.DeleteConsumer(ctx, consumer.CachedInfo().Name) // the server forgets it after a while
	}
	return f, nil
}
