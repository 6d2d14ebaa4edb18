package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"ledgerd/engine/ledger"
)

const (
	// askEvery is between two questions where the stream ends.
	askEvery = time.Second
	// claimPatience is how long a claim may take to show up in the stream until it is sent again.
	claimPatience = 500 * time.Millisecond
)

// errInterrupted says that waiting for a message was ended so that something else be done.
var errInterrupted = errors.New("interrupted")

// follower is one call of Follow.
type follower struct {
	log     *Log
	cluster *Cluster
	from    ledger.LogPoint
	hand    func([]*ledger.Record) error
	stream  jetstream.Stream
	decoder *decoder
	feed    *feed
	lease   *lease // nil: the node never writes
	wake    chan struct{}
	claimed time.Time // when the claim was sent last; zero: none was
	claim   []byte
	end     uint64 // where the stream ended when this node joined it
}

func (f *follower) run(ctx context.Context) error {
	defer func() {
		if f.feed != nil {
			f.feed.close()
		}
		if f.decoder != nil {
			f.decoder.close()
		}
	}()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	f.log.setRole(Reader)
	if f.cluster.config.MayWrite {
		f.log.setRole(Standby)
	}
	if err := f.join(ctx); err != nil {
		return err
	}
	if f.cluster.config.MayWrite {
		if f.lease = f.log.wantsLease(); f.lease == nil {
			f.log.setRole(Reader)
		} else {
			f.wake = make(chan struct{}, 1)
			f.lease.onTaken(func() {
				select {
				case f.wake <- struct{}{}:
				default:
				}
			})
			defer f.lease.onTaken(nil)
		}
	}
	watching := make(chan struct{})
	defer func() { <-watching }()
	defer cancel(nil)
	go func() {
		defer close(watching)
		if err := f.cluster.watch(ctx, f.log); err != nil {
			cancel(err)
		}
	}()
	for {
		done, err := f.step(ctx)
		if err != nil {
			if cause := context.Cause(ctx); cause != nil {
				return cause // the caller's, or what watch found
			}
			return err
		}
		if done {
			return f.log.becomes(f.decoder.at, f.stream)
		}
	}
}

// join finds the place to begin with.
func (f *follower) join(ctx context.Context) error {
	stream, info, err := f.cluster.bind(ctx)
	if err != nil {
		return err
	}
	begin, err := f.cluster.place(ctx, stream, info, f.from)
	if err != nil {
		return err
	}
	f.stream, f.end = stream, info.State.LastSeq
	f.log.took(begin - 1)
	f.decoder, err = newDecoder(begin-1, f.from, f.cluster.stats.refuse)
	return err
}

// step takes the next message in, or does what else is due; done: the node is the writer.
func (f *follower) step(ctx context.Context) (done bool, err error) {
	if f.feed == nil {
		if err := f.reopen(ctx); err != nil {
			return false, err
		}
	}
	if f.lease != nil && f.lease.held() {
		if err := f.claims(ctx); err != nil {
			return false, err
		}
	}
	m, err := f.feed.next(ctx, f.wake, f.patience())
	switch {
	case errors.Is(err, errInterrupted):
		return false, nil
	case err != nil && ctx.Err() == nil && !permanent(err):
		f.feed.close()
		f.feed = nil
		f.cluster.stats.reopened.Add(1)
		return false, nil
	case err != nil:
		return false, err
	}
	return f.take(m)
}

// patience is how long to wait for a message before something else is due; 0: for ever, or until the lease is taken. A lease
// that was taken may not be held at the moment, and is again once it was renewed, which wakes nobody.
func (f *follower) patience() time.Duration {
	if f.lease == nil {
		return 0
	}
	if _, has, _ := f.lease.state(); has {
		return claimPatience
	}
	return 0
}

// take takes a message in.
func (f *follower) take(m message) (done bool, err error) {
	commit, err := f.decoder.take(m.sequence, m.data)
	if err != nil {
		return false, err
	}
	n := &f.cluster.stats
	n.chunksRead.Add(1)
	n.bytesRead.Add(len(m.data))
	n.epoch.Store(f.decoder.at.epoch)
	if commit != nil {
		n.commitsRead.Add(1)
		if err := f.hand(commit); err != nil {
			return false, err
		}
	}
	f.log.took(m.sequence)
	if held := f.from.Version; m.sequence >= f.end && f.decoder.at.point.Version < held {
		return false, fmt.Errorf("%w: it ended with version %d, this node holds %d", ErrShortened, f.decoder.at.point.Version, held)
	}
	return f.claim != nil && isClaim(m.data, f.log.nonce[:]), nil
}

// reopen begins to receive from behind what was taken. The stream is looked at anew: it must be the same, and begin and
// end so that it goes on from there.
func (f *follower) reopen(ctx context.Context) error {
	var shorter doubt
	return f.cluster.insist(ctx, "following the stream", func(ctx context.Context) error {
		stream, info, err := f.cluster.look(ctx)
		if err != nil {
			return err // watch tells whether it is gone
		}
		at := f.decoder.at.sequence
		if info.State.LastSeq >= at {
			shorter = doubt{}
		}
		switch {
		case info.State.FirstSeq > at+1:
			return fmt.Errorf("%w: it begins with message %d, message %d comes next", ErrPurged, info.State.FirstSeq, at+1)
		case info.State.LastSeq < at:
			if shorter.lasts(f.cluster.goneFor) {
				return fmt.Errorf("%w: it ends with message %d, message %d was taken", ErrShortened, info.State.LastSeq, at)
			}
			return fmt.Errorf("it ends with message %d, message %d was taken", info.State.LastSeq, at)
		case !f.decoder.joined && info.State.LastSeq == 0 && at == 0:
		case !f.decoder.joined && info.State.LastSeq == at:
			return fmt.Errorf("%w: it is empty", ErrPurged)
		}
		f.stream = stream
		f.feed, err = f.cluster.openFeed(ctx, stream, at+1)
		return err
	})
}

// claims sends a claim when the node stands at the end of the stream. Whether it succeeded shows in the stream.
func (f *follower) claims(ctx context.Context) error {
	if time.Since(f.claimed) < claimPatience {
		return nil
	}
	var last uint64
	err := f.cluster.request(ctx, func(ctx context.Context) error {
		stream, info, err := f.cluster.look(ctx)
		if err != nil {
			return err
		}
		f.stream, last = stream, info.State.LastSeq
		return nil
	})
	at := f.decoder.at
	if permanent(err) || err != nil && ctx.Err() != nil {
		return err
	}
	if err != nil || last != at.sequence {
		return nil // later
	}
	f.claimed = time.Now()
	f.claim = encodeClaim(at, f.cluster.config.NodeID, f.log.nonce)
	return f.cluster.publishClaim(f.claim, at.epoch+1, at.sequence)
}
