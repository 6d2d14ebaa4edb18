package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"ledgerd/engine/ledger"
)

const publishing = "writing to the stream"

// Commit appends a commit after all that was followed or committed before. It returns when the stream acknowledged all of
// it, or when it was seen there. While the stream cannot be reached it waits. It returns ledger.ErrDeposed when another node is the
// writer: then nobody ever sees the commit. After any error nothing more is committed; if ctx ended it is open whether
// the commit is in the stream, which following it tells.
func (l *Log) Commit(ctx context.Context, commit []*ledger.Record) error {
	if l.encoder == nil {
		return errors.New("the log is committed to by a node that is not its writer")
	}
	if l.failed != nil {
		return fmt.Errorf("the log has failed and is not written any more: %w", l.failed)
	}
	after, err := l.commit(ctx, commit)
	if err != nil {
		l.failed = fmt.Errorf("cannot write versions from %d on to stream %s: %w", l.at.point.Version+1, l.cluster.config.Stream, err)
		if errors.Is(err, ledger.ErrDeposed) {
			l.markDeposed()
		}
		return l.failed
	}
	l.at = after
	l.noteFirst(commit)
	return nil
}

func (l *Log) commit(ctx context.Context, commit []*ledger.Record) (after cursor, err error) {
	select {
	case <-l.deposed:
		return cursor{}, ledger.ErrDeposed
	default:
	}
	messages, after, err := l.encoder.encode(commit, l.at)
	if err != nil {
		return cursor{}, err
	}
	base := l.at.sequence
	for next := 0; next < len(messages); {
		to := min(next+l.unit, len(messages))
		err := l.sendUnit(ctx, messages[next:to], base+uint64(next))
		if err == nil {
			next = to
			continue
		}
		l.cluster.stats.retries.Add(1)
		if ctx.Err() == nil {
			l.cluster.setFault(publishing, err)
		}
		if next, err = l.reconcile(ctx, messages, base, next); err != nil {
			return cursor{}, err
		}
	}
	l.cluster.clearFault(publishing, true)
	after.sequence = base + uint64(len(messages))
	n := &l.cluster.stats
	n.commitsWritten.Add(1)
	n.chunksWritten.Add(len(messages))
	for _, m := range messages {
		n.bytesWritten.Add(len(m))
	}
	n.last.Store(after.sequence)
	return after, nil
}

// reconcile looks up which messages from one on are in the stream, and returns the first that is not.
func (l *Log) reconcile(ctx context.Context, messages [][]byte, base uint64, next int) (int, error) {
	err := l.cluster.Retry(ctx, "reading the stream", func(ctx context.Context) error {
		_, info, err := l.cluster.look(ctx)
		if err != nil {
			return err
		}
		if info.State.LastSeq < base+uint64(next) {
			return unlikely{fmt.Errorf("%w: it ends before message %d", ErrShortened, base+uint64(next))}
		}
		for ; next < len(messages) && base+uint64(next) < info.State.LastSeq; next++ {
			if err := l.compareAt(ctx, base+uint64(next)+1, messages[next]); err != nil {
				if errors.Is(err, jetstream.ErrMsgNotFound) {
					return nil // an old copy; sending it again does no harm
				}
				return err
			}
		}
		return nil
	})
	if err == nil && next < len(messages) {
		err = l.cluster.sleep(ctx, firstPause)
	}
	return next, err
}

// compareAt looks whether the stream holds a message of this writer at a sequence.
func (l *Log) compareAt(ctx context.Context, sequence uint64, want []byte) error {
	m, err := l.stream.GetMsg(ctx, sequence)
	if err != nil {
		return err
	}
	if bytes.Equal(m.Data, want) {
		return nil
	}
	h, err := decodeHead(m.Data)
	switch {
	case err == nil && h.epoch > l.at.epoch:
		return errDeposed
	case err == nil:
		err = damaged("it is not what this node wrote, in its own epoch %d", l.at.epoch)
	}
	return l.cluster.stats.countDamage(sequence, err)
}

// errDeposed is ledger.ErrDeposed with what was seen.
var errDeposed = fmt.Errorf("%w: its message stands where this node's would", ledger.ErrDeposed)
