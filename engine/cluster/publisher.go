package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
)

const (
	// unitMessages is how many messages are sent at once: the server takes all of them or none. 16 MiB; it takes up to 1000.
	unitMessages = 256
	// ackTimeout is how long no acknowledgement may come until what became of a message is looked up.
	ackTimeout = 2 * time.Second
)

// publisher sends messages to the stream, each to the sequence that it was made for, and awaits the acknowledgements. It is for
// one goroutine.
//
// What it sends at once is a unit: one message, or an atomic batch of them. Only the first says which sequence it expects, and
// nothing is sent behind a unit before it is known to be in the stream. Were two messages on their way, each with the sequence
// that it expects, then another node's claim could stand where the first of them was to be, and would be what the second
// expects.
type publisher struct {
	cluster *Cluster
	inbox   string
	unit    int // messages at once
	acks    chan *nats.Msg
	sub     *nats.Subscription
	cut     chan nats.Status // tells that the connection was lost: what was on its way back is, too
	attempt uint64
}

func newPublisher(c *Cluster, atomic bool) (*publisher, error) {
	p := &publisher{cluster: c, inbox: c.conn.NewInbox() + ".", unit: 1, acks: make(chan *nats.Msg, 64)}
	if atomic {
		p.unit = unitMessages
	}
	var err error
	if p.sub, err = c.conn.ChanSubscribe(p.inbox+"*", p.acks); err != nil {
		return nil, fmt.Errorf("cannot await acknowledgements: %w", err)
	}
	p.cut = c.conn.StatusChanged(nats.RECONNECTING)
	return p, nil
}

// close ends what the connection does for the publisher. It ends with the connection, too.
func (p *publisher) close() {
	_ = p.sub.Unsubscribe()
	p.cluster.conn.RemoveStatusListener(p.cut)
}

// ack is what the server answers to a unit.
type ack struct {
	Stream   string `json:"stream"`
	Sequence uint64 `json:"seq"` // of the last message
	Error    *struct {
		ErrorCode   int    `json:"err_code"`
		Description string `json:"description"`
	} `json:"error"`
}

// send sends messages from one on, message i to the sequence base+1+i, and returns how many of all are acknowledged. It
// returns an error with that where it does not know that all are: whether the others are in the stream must be looked up.
func (p *publisher) send(ctx context.Context, messages [][]byte, base uint64, from int) (acked int, err error) {
	for acked = from; acked < len(messages); {
		to := min(acked+p.unit, len(messages))
		if err := p.sendUnit(ctx, messages[acked:to], base+uint64(acked)); err != nil {
			return acked, err
		}
		acked = to
	}
	return acked, nil
}

// sendUnit sends messages that belong after a sequence, and returns when they are acknowledged.
func (p *publisher) sendUnit(ctx context.Context, messages [][]byte, after uint64) error {
	p.attempt++
	reply := p.inbox + strconv.FormatUint(p.attempt, 10)
	batch := reply[max(0, len(reply)-maxBatchID):]
	for i, data := range messages {
		m := p.cluster.messageAfter(after, data)
		if i > 0 {
			m.Header = nats.Header{} // only the first says what it expects
		}
		if len(messages) > 1 {
			m.Header["Nats-Batch-Id"] = []string{batch}
			m.Header["Nats-Batch-Sequence"] = []string{strconv.Itoa(i + 1)}
		}
		if i == len(messages)-1 {
			m.Reply = reply
			if i > 0 {
				m.Header["Nats-Batch-Commit"] = []string{"1"}
			}
		}
		if err := p.cluster.conn.PublishMsg(m); err != nil {
			return fmt.Errorf("cannot send a message: %w", err)
		}
	}
	answer, err := p.await(ctx, reply)
	if err != nil {
		return err
	}
	return p.check(answer, after+uint64(len(messages)))
}

// maxBatchID is how many bytes a server takes for the name of a batch.
const maxBatchID = 64

// await returns the answer to a unit.
func (p *publisher) await(ctx context.Context, subject string) (*nats.Msg, error) {
	timer := time.NewTimer(ackTimeout)
	defer timer.Stop()
	for {
		select {
		case m := <-p.acks:
			if m != nil && m.Subject == subject {
				return m, nil
			} // else it is one to an attempt before
		case <-timer.C:
			return nil, errors.New("no acknowledgement came")
		case <-p.cut:
			return nil, errors.New("the connection was lost before an acknowledgement came")
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-p.cluster.ctx.Done():
			return nil, ErrClosed
		}
	}
}

// check returns why messages up to a sequence are not in the stream, as far as the answer tells.
func (p *publisher) check(m *nats.Msg, sequence uint64) error {
	if len(m.Data) == 0 {
		return fmt.Errorf("no server takes messages of the stream (%s)", m.Header.Get("Status"))
	}
	var a ack
	switch err := json.Unmarshal(m.Data, &a); {
	case err != nil:
		return fmt.Errorf("an acknowledgement that cannot be read: %w", err)
	case a.Error != nil:
		return fmt.Errorf("the stream refuses a message: %s (%d)", a.Error.Description, a.Error.ErrorCode)
	case a.Stream != p.cluster.config.Stream || a.Sequence != sequence:
		return fmt.Errorf("message %d of stream %q is acknowledged instead of message %d", a.Sequence, a.Stream, sequence)
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
