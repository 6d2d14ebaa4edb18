package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"ledgerd/bench/wsclient"
)

// member is one of the crowd: it comes, stays, leaves, and comes again.
type member struct {
	soak   *soakRun
	random *rand.Rand
	keys   map[string]bool // what a filtered one names
	seq    uint64          // the last that a follower saw, 0: none
}

// about returns a random duration with the given mean, so that in a crowd somebody comes and
// goes at any moment.
func (m *member) about(mean time.Duration) time.Duration {
	return time.Duration(min(m.random.ExpFloat64(), 4) * m.soak.patience * float64(mean))
}

// join connects with a query. No connection is a fault, unless all is over.
func (m *member) join(ctx context.Context, query string, o wsclient.Options) *wsclient.Conn {
	o.Timeout = soakTimeout
	c, err := wsclient.Dial(ctx, m.soak.url+query, o)
	if err != nil {
		if ctx.Err() == nil {
			m.soak.fault("cannot join: %v", err)
		}
		return nil
	}
	m.soak.joined.Add(1)
	return c
}

// stay reads for a while, or until ctx ends. What ends the connection before is returned.
func (m *member) stay(ctx context.Context, c *wsclient.Conn, d time.Duration, visit func(batch []byte, frames int)) error {
	err := drainFor(ctx, c, d, func(batch []byte, frames int) {
		m.soak.frames.Add(uint64(frames))
		visit(batch, frames)
	})
	if errors.Is(err, os.ErrDeadlineExceeded) || ctx.Err() != nil {
		return nil
	}
	return err
}

// drainFor drains a conn until a time has passed or ctx ends, which both are
// os.ErrDeadlineExceeded, or the connection does.
func drainFor(ctx context.Context, c *wsclient.Conn, d time.Duration, visit func(batch []byte, frames int)) error {
	_ = c.NetConn().SetReadDeadline(time.Now().Add(d)) // a socket without one fails
	stop := context.AfterFunc(ctx, func() { _ = c.NetConn().SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	return c.Drain(visit)
}

// leave ends a connection the way people do: one in ten resets it, the others close it.
func (m *member) leave(c *wsclient.Conn) {
	if m.random.IntN(10) == 0 {
		m.soak.resets.Add(1)
		reset(c)
		return
	}
	_ = c.Close()
}

// reset drops a connection as a host does that lost it.
func reset(c *wsclient.Conn) {
	if tcp, ok := c.NetConn().(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = c.NetConn().Close()
}

// What the lives of members take, on average. The server resets a socket that takes nothing
// for 5 s, and drops a peer that shows nothing for 60 s; each is given more.
const (
	soakStay    = 50 * time.Second
	soakFollow  = 20 * time.Second
	soakAway    = 5 * time.Second
	soakRefused = 15 * time.Second
	soakSilent  = 75 * time.Second
)

// hearAll is the life of one who wants everything.
func (m *member) hearAll(ctx context.Context) {
	c := m.join(ctx, "", wsclient.Options{ReceiveBuffer: 256 << 10})
	if c == nil {
		return
	}
	if err := m.stay(ctx, c, m.about(soakStay), func([]byte, int) {}); err != nil {
		m.soak.fault("a whole-stream subscriber was thrown out: %v", err)
	}
	if m.random.IntN(200) == 0 {
		m.stopReading(ctx, c)
		return
	}
	m.leave(c)
}

// hearSome is the life of one who named accounts, and must hear of no others.
func (m *member) hearSome(ctx context.Context) {
	names := make([]string, 0, 10)
	m.keys = make(map[string]bool, cap(names))
	for range cap(names) {
		key := m.soak.keys[m.random.IntN(len(m.soak.keys))]
		names = append(names, key)
		m.keys[key] = true
	}
	c := m.join(ctx, "?pubkeys="+strings.Join(names, ","), wsclient.Options{})
	if c == nil {
		return
	}
	err := m.stay(ctx, c, m.about(soakStay), func(batch []byte, _ int) {
		wsclient.Each(batch, func(payload []byte) {
			if key := updatedKey(payload); !m.keys[key] {
				m.soak.fault("a subscriber of other keys was told %.200q", payload)
			}
		})
	})
	if err != nil {
		m.soak.fault("a filtered subscriber was thrown out: %v", err)
	}
	if m.random.IntN(100) == 0 {
		m.fallSilent(ctx, c)
		return
	}
	m.leave(c)
}

// updatedKey returns the pubkey of an account update, "" if the payload is none.
func updatedKey(payload []byte) string {
	const start = `{"type":"account_update","pubkey":"`
	rest, ok := bytes.CutPrefix(payload, []byte(start))
	if !ok {
		return ""
	}
	key, _, _ := bytes.Cut(rest, []byte(`"`))
	return string(key)
}

// neverRead is the life of one who connects and reads nothing at all.
func (m *member) neverRead(ctx context.Context) {
	if c := m.join(ctx, "", wsclient.Options{ReceiveBuffer: 16 << 10}); c != nil {
		m.stopReading(ctx, c)
	}
}

// follow is the life of one who has seen a seq and comes back for the rest: in one life after
// the other no number may be missing or told twice.
func (m *member) follow(ctx context.Context) {
	query := "?extended=true"
	if m.seq > 0 {
		query += "&resume_from=" + strconv.FormatUint(m.seq, 10)
	}
	c := m.join(ctx, query, wsclient.Options{})
	if c == nil {
		return
	}
	if m.seq > 0 {
		m.soak.resumed.Add(1)
	}
	row := sequence{last: m.seq}
	err := m.stay(ctx, c, m.about(soakFollow), func(batch []byte, _ int) {
		wsclient.Each(batch, func(payload []byte) {
			if err := row.take(payload); err != nil {
				m.soak.fault("who came back at %d: %v", m.seq, err)
			}
		})
	})
	if err != nil {
		m.soak.fault("a follower was thrown out: %v", err)
	}
	m.seq = row.last
	m.leave(c)
	pause(ctx, m.about(soakAway))
}

// sequence watches that extended frames come without holes and none twice.
type sequence struct {
	last uint64 // 0: nothing came yet
}

// take looks at the next frame. After an error it goes on from there.
func (s *sequence) take(payload []byte) error {
	switch {
	case wsclient.IsUpdate(payload):
		seq, ok := numberAfter(payload, `,"seq":`)
		before := s.last
		s.last = seq
		if !ok || before > 0 && seq != before+1 {
			return fmt.Errorf("after %d came %.300q", before, payload)
		}
	case bytes.HasPrefix(payload, []byte(`{"type":"slot_end"`)), bytes.HasPrefix(payload, []byte(`{"type":"rollback"`)),
		bytes.HasPrefix(payload, []byte(`{"type":"heartbeat"`)):
		seq, ok := numberAfter(payload, `,"seq":`)
		before := s.last
		s.last = seq
		if !ok || before > 0 && seq != before {
			return fmt.Errorf("after %d came %.300q", before, payload)
		}
	case bytes.HasPrefix(payload, []byte(`{"type":"resumed"`)):
		if from, ok := numberAfter(payload, `"from_seq":`); !ok || from != s.last {
			return fmt.Errorf("asked to go on after %d, was answered %.300q", s.last, payload)
		}
	default:
		return fmt.Errorf("after %d came %.300q", s.last, payload)
	}
	return nil
}

// numberAfter returns the number that stands behind a mark.
func numberAfter(payload []byte, mark string) (n uint64, ok bool) {
	at := bytes.Index(payload, []byte(mark))
	if at < 0 {
		return 0, false
	}
	for _, d := range payload[at+len(mark):] {
		if d < '0' || d > '9' {
			break
		}
		n, ok = n*10+uint64(d-'0'), true
	}
	return n, ok
}
