package cluster

import (
	"context"
	"crypto/rand"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const (
	// unitMessages is how many messages are sent at once: the server takes all of them or none. 16 MiB; it takes up to 1000.
	unitMessages = 256
	// ackTimeout is how long an acknowledgement may take until what became of a unit is looked up.
	ackTimeout = 2 * time.Second
)

// sendUnit sends messages that belong after a sequence, and returns when they are acknowledged. After an error it must be looked
// up whether they are in the stream.
//
// What is sent at once is a unit: one message, or an atomic batch of them. Only the first says which sequence it expects, and
// nothing is sent after a unit before it is known to be in the stream. Were two messages on their way, each with the sequence
// that it expects, then another node's claim could stand where the first of them was to be, and would be what the second
// expects.
func (l *Log) sendUnit(ctx context.Context, messages [][]byte, after uint64) error {
	batch, last := rand.Text(), len(messages)-1
	for i, data := range messages {
		m := l.cluster.messageAfter(after, data)
		if i > 0 {
			m.Header = nats.Header{} // only the first says what it expects
		}
		if last > 0 {
			m.Header["Nats-Batch-Id"] = []string{batch}
			m.Header["Nats-Batch-Sequence"] = []string{strconv.Itoa(i + 1)}
		}
		if i < last {
			if err := l.cluster.conn.PublishMsg(m); err != nil {
				return fmt.Errorf("cannot send a message: %w", err)
			}
			continue
		}
		if last > 0 {
			m.Header["Nats-Batch-Commit"] = []string{"1"}
		}
		ctx, cancel := context.WithTimeout(ctx, l.cluster.pace.ack)
		defer cancel()
		ack, err := l.cluster.js.PublishMsg(ctx, m, jetstream.WithRetryAttempts(0))
		if err != nil {
			return fmt.Errorf("no acknowledgement came: %w", err)
		}
		if want := after + uint64(len(messages)); ack.Stream != l.cluster.config.Stream || ack.Sequence != want {
			return fmt.Errorf("message %d of stream %q is acknowledged instead of message %d", ack.Sequence, ack.Stream, want)
		}
	}
	return nil
}

// messageAfter returns a message that the stream takes only if a sequence is its newest.
func (c *Cluster) messageAfter(sequence uint64, data []byte) *nats.Msg {
	return &nats.Msg{Subject: c.config.subject(), Data: data, Header: nats.Header{
		"Nats-Expected-Last-Sequence": {strconv.FormatUint(sequence, 10)},
		"Nats-Expected-Stream":        {c.config.Stream},
	}}
}
