package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
)

const (
	// inFlight is how many messages of a commit may await their acknowledgements: 8 MiB, enough to keep the servers busy
	// while they sync, and less than what they hold for one stream before they refuse more.
	inFlight = 128
	// ackPatience is how long no acknowledgement may come until what became of a message is looked up.
	ackPatience = 2 * time.Second
)

// publisher sends messages to the stream, each to the sequence that it was made for, and collects the acknowledgements. It is
// for one goroutine.
type publisher struct {
	cluster *Cluster
	inbox   string
	acks    chan *nats.Msg
	sub     *nats.Subscription
	attempt uint64
}

func newPublisher(c *Cluster) (*publisher, error) {
	p := &publisher{cluster: c, inbox: c.conn.NewInbox() + ".", acks: make(chan *nats.Msg, 4*inFlight)}
	var err error
	if p.sub, err = c.conn.ChanSubscribe(p.inbox+"*.*", p.acks); err != nil {
		return nil, fmt.Errorf("cannot await acknowledgements: %w", err)
	}
	return p, nil
}

// close ends the subscription.
func (p *publisher) close() { _ = p.sub.Unsubscribe() } // it ends with the connection, too

// ack is what the server answers.
type ack struct {
	Stream   string `json:"stream"`
	Sequence uint64 `json:"seq"`
	Error    *struct {
		Code        int    `json:"code"`
		ErrorCode   int    `json:"err_code"`
		Description string `json:"description"`
	} `json:"error"`
}

// send sends messages from one on, message i to the sequence base+1+i, and returns how many of all are acknowledged without
// a gap. It returns an error with that where it does not know that all are: whether the others are in the stream must
// be looked up.
func (p *publisher) send(ctx context.Context, messages [][]byte, id func(int) string, base uint64, from int) (acked int, err error) {
	p.attempt++
	prefix := p.inbox + strconv.FormatUint(p.attempt, 10) + "."
	done := make([]bool, len(messages))
	acked, next := from, from
	timer := time.NewTimer(ackPatience)
	defer timer.Stop()
	for acked < len(messages) {
		if next < len(messages) && next-acked < inFlight && err == nil {
			if err = p.publish(prefix, messages[next], id(next), base+uint64(next), next); err == nil {
				next++
			}
		}
		if err != nil && next == acked {
			return acked, err
		}
		full := next == len(messages) || next-acked == inFlight || err != nil
		m, waited := p.receive(ctx, timer.C, full)
		switch {
		case waited != nil:
			return acked, errors.Join(err, waited)
		case m == nil:
			continue
		}
		i, ok := p.index(m, prefix)
		if !ok || i >= next || done[i] {
			continue // of an attempt before
		}
		if failed := p.check(m, base+uint64(i)+1); failed != nil {
			return acked, failed // those behind it fail as well
		}
		timer.Reset(ackPatience)
		for done[i] = true; acked < len(messages) && done[acked]; {
			acked++
		}
	}
	return acked, nil
}

func (p *publisher) publish(prefix string, data []byte, id string, expected uint64, i int) error {
	m := &nats.Msg{
		Subject: p.cluster.config.subject(), Reply: prefix + strconv.Itoa(i), Data: data,
		Header: nats.Header{
			"Nats-Msg-Id":                 {id},
			"Nats-Expected-Last-Sequence": {strconv.FormatUint(expected, 10)},
			"Nats-Expected-Stream":        {p.cluster.config.Stream},
		},
	}
	if err := p.cluster.conn.PublishMsg(m); err != nil {
		return fmt.Errorf("cannot send a message: %w", err)
	}
	return nil
}

// receive returns the next answer; nil: there is none yet, and wait says not to wait.
func (p *publisher) receive(ctx context.Context, over <-chan time.Time, wait bool) (*nats.Msg, error) {
	select {
	case m := <-p.acks:
		return m, nil
	default:
		if !wait {
			return nil, nil
		}
	}
	select {
	case m := <-p.acks:
		return m, nil
	case <-over:
		return nil, errors.New("no acknowledgement came")
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-p.cluster.ctx.Done():
		return nil, ErrClosed
	}
}

// index returns which message of the present attempt an answer is to.
func (p *publisher) index(m *nats.Msg, prefix string) (int, bool) {
	digits, ok := strings.CutPrefix(m.Subject, prefix)
	if !ok {
		return 0, false
	}
	i, err := strconv.Atoi(digits)
	return i, err == nil && i >= 0
}

// check returns why a message is not in the stream at a sequence, as far as its answer tells.
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

// publishClaim sends a claim to the sequence behind one. What came of it is not waited for.
func (c *Cluster) publishClaim(claim []byte, epoch, behind uint64) error {
	m := &nats.Msg{Subject: c.config.subject(), Data: claim, Header: nats.Header{
		"Nats-Msg-Id":                 {fmt.Sprintf("claim-%d-%x", epoch, claim[headBytes:headBytes+nonceBytes])},
		"Nats-Expected-Last-Sequence": {strconv.FormatUint(behind, 10)},
		"Nats-Expected-Stream":        {c.config.Stream},
	}}
	_ = c.conn.PublishMsg(m) // it is sent again until it, or another's, stands in the stream
	return nil
}
