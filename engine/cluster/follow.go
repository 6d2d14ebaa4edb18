package cluster

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"ledgerd/engine/ledger"
)

const (
	// lookInterval is between two questions where the stream ends.
	lookInterval = time.Second
	// claimTimeout is how long a claim may take to show up in the stream until it is sent again.
	claimTimeout = 500 * time.Millisecond
)

// follower is one call of Follow.
type follower struct {
	log     *Log
	from    ledger.LogPoint
	hand    func([]*ledger.Record) error
	stream  jetstream.Stream
	decoder *decoder
	feed    *feed
	claimed time.Time // when the claim was sent last; zero: none was
	end     uint64    // where the stream ended when this node joined it
	newest  written   // the newest block that came, by the servers' clock; zero: none did
}

func (f *follower) run(ctx context.Context) error {
	defer func() {
		f.drop()
		if f.decoder != nil {
			f.decoder.close()
		}
	}()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(f.log.cluster.ctx, func() { cancel(ErrClosed) })()
	f.log.setRole(Reader)
	if f.log.cluster.config.MayWrite && !f.log.lease.now.Load().resigned {
		f.log.setRole(Standby)
	}
	if err := f.join(ctx); err != nil {
		return err
	}
	var watching sync.WaitGroup
	defer watching.Wait()
	defer cancel(nil)
	watching.Go(func() {
		if err := f.log.cluster.watch(ctx, f.log); err != nil {
			cancel(err)
		}
	})
	for {
		done, err := f.step(ctx)
		if err != nil {
			if cause := context.Cause(ctx); cause != nil {
				return cause // the caller's, or what watch found
			}
			return err
		}
		if done {
			return f.log.becomeWriter(f.decoder.at, f.stream, f.newest)
		}
	}
}

// join finds the message to begin with.
func (f *follower) join(ctx context.Context) error {
	stream, info, begin, err := f.log.cluster.bindAt(ctx, f.from)
	if err != nil {
		return err
	}
	f.stream, f.end = stream, info.State.LastSeq
	f.log.noteTaken(begin - 1)
	f.decoder, err = newDecoder(begin-1, f.from, f.log.cluster.stats.countDamage)
	return err
}

// step takes the next message in, or does what else is due; done: the node is the writer.
func (f *follower) step(ctx context.Context) (done bool, err error) {
	if f.feed == nil {
		if err := f.reopen(ctx); err != nil {
			return false, err
		}
	}
	if f.log.lease.held() {
		f.sendClaim()
	}
	select {
	case m := <-f.feed.messages:
		return f.receive(ctx, m)
	case <-f.feed.broken:
		f.drop()
		f.log.cluster.stats.reopened.Add(1)
		return false, nil
	case <-f.log.lease.wrote: // the lease may be held now
		return false, nil
	case <-time.After(pollInterval): // a claim may have to be sent again
		return false, nil
	case <-ctx.Done():
		return false, ctx.Err()
	}
}

// drop ends the feed, if there is one.
func (f *follower) drop() {
	if f.feed != nil {
		f.feed.close()
		f.feed = nil
	}
}

// receive takes a message in if it is the next one.
func (f *follower) receive(ctx context.Context, m jetstream.Msg) (done bool, err error) {
	next := f.decoder.at.sequence + 1
	if meta, err := m.Metadata(); err == nil && meta.Sequence.Stream == next {
		return f.take(ctx, next, m.Data(), meta.Timestamp)
	}
	f.drop()
	f.log.cluster.stats.reopened.Add(1)
	_, err = f.log.cluster.dataAt(ctx, f.stream, next) // nil where the next one was only lost on its way
	return false, err
}

// take takes a message in that the servers have stored at a time.
func (f *follower) take(ctx context.Context, sequence uint64, message []byte, stored time.Time) (done bool, err error) {
	commit, err := f.decoder.take(sequence, message)
	if err != nil {
		return false, err
	}
	n := &f.log.cluster.stats
	n.chunksRead.Add(1)
	n.bytesRead.Add(len(message))
	n.epoch.Store(f.decoder.at.epoch)
	for _, r := range commit {
		if isBlock(r) {
			f.newest = written{r.Slot, stored}
		}
	}
	if len(commit) > 0 {
		n.commitsRead.Add(1)
		if err := f.hand(commit); err != nil {
			return false, err
		}
	}
	f.log.noteTaken(sequence)
	if sequence >= f.end && f.decoder.at.point.Version < f.from.Version {
		if err := f.findEnd(ctx, sequence); err != nil {
			return false, err
		}
	}
	if f.claimed.IsZero() || !isClaim(message, f.log.nonce[:]) {
		return false, nil
	}
	if f.newest != (written{}) { // the claim was stored just now: from here on this node's clock counts
		f.newest.At = time.Now().Add(f.newest.At.Sub(stored))
	}
	return true, nil
}

// findEnd looks where a stream ends that ended, when this node joined it, with a message before what the node holds.
func (f *follower) findEnd(ctx context.Context, sequence uint64) error {
	return f.log.cluster.Retry(ctx, "looking for what this node holds", func(ctx context.Context) error {
		_, info, err := f.log.cluster.look(ctx)
		if err != nil {
			return err
		}
		if f.end = info.State.LastSeq; f.end > sequence {
			return nil
		}
		return unlikely{fmt.Errorf("%w: it ended with version %d, this node holds %d", ErrShortened, f.decoder.at.point.Version, f.from.Version)}
	})
}

// reopen begins to receive from after what was taken. It waits while the stream does not go on from there: watch ends that.
func (f *follower) reopen(ctx context.Context) error {
	return f.log.cluster.Retry(ctx, "following the stream", func(ctx context.Context) error {
		stream, info, err := f.log.cluster.look(ctx)
		if err != nil {
			return err
		}
		at := f.decoder.at.sequence
		if info.State.FirstSeq > at+1 || info.State.LastSeq < at {
			return fmt.Errorf("it holds messages %d to %d, message %d comes next", info.State.FirstSeq, info.State.LastSeq, at+1)
		}
		f.stream = stream
		f.feed, err = f.log.cluster.openFeed(ctx, stream, at+1)
		return err
	})
}

// sendClaim sends a claim, which the stream takes only if the node stands at its end. Whether it did shows in the stream; it is sent
// again until it, or another's, is stored.
func (f *follower) sendClaim() {
	if time.Since(f.claimed) < claimTimeout {
		return
	}
	f.claimed = time.Now()
	at := f.decoder.at
	claim := encodeClaim(at, f.log.cluster.config.NodeID, f.log.nonce)
	_ = f.log.cluster.conn.PublishMsg(f.log.cluster.messageAfter(at.sequence, claim))
}
