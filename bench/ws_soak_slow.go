package bench

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"syscall"
	"time"

	"ledgerd/bench/wsclient"
)

// What slow readers take in a second. Of literal frames 7,500 updates a second are 1.2 MB, of
// extended ones 2.4 MB.
const (
	slowLiteralBytes  = 600_000
	slowExtendedBytes = 1_200_000
	closeSlow         = 4008
)

// paced returns a visitor that takes no more than so much a second: while it waits nobody
// reads the socket.
func paced(ctx context.Context, bytesPerSecond int, visit func(batch []byte)) func([]byte, int) {
	return func(batch []byte, _ int) {
		visit(batch)
		pause(ctx, time.Duration(len(batch))*time.Second/time.Duration(bytesPerSecond))
	}
}

// conflate is the life of one who is too slow and has asked for the newest states instead: it
// stays as long as it likes, and misses nothing but what gap frames tell.
func (m *member) conflate(ctx context.Context) {
	const stay = 5 * time.Minute
	if m.random.IntN(2) == 0 {
		m.conflateLiteral(ctx, stay)
		return
	}
	c := m.join(ctx, "?overflow=conflate&extended=true", wsclient.Options{ReceiveBuffer: 64 << 10})
	if c == nil {
		return
	}
	state := wsclient.State{Whole: true}
	err := m.stay(ctx, c, m.about(stay), paced(ctx, slowExtendedBytes, func(batch []byte) { m.fold(&state, batch) }))
	if err != nil {
		m.soak.fault("a conflating subscriber was thrown out after %d gaps: %v", state.Gaps, err)
	}
	m.soak.gaps.Add(uint64(state.Gaps))
	m.leave(c)
}

func (m *member) conflateLiteral(ctx context.Context, stay time.Duration) {
	c := m.join(ctx, "?overflow=conflate", wsclient.Options{ReceiveBuffer: 64 << 10})
	if c == nil {
		return
	}
	err := m.stay(ctx, c, m.about(stay), paced(ctx, slowLiteralBytes, func([]byte) {}))
	if err != nil {
		m.soak.fault("a conflating subscriber was thrown out: %v", err)
	}
	m.leave(c)
}

// fold applies frames to a state. What that finds missing or told twice is a fault, once.
func (m *member) fold(state *wsclient.State, batch []byte) {
	missing, repeated := state.Missing, state.Repeated
	wsclient.Each(batch, func(payload []byte) {
		if err := state.Apply(payload); err != nil {
			m.soak.fault("%v", err)
		}
		if state.Missing != missing || state.Repeated != repeated {
			m.soak.fault("up to %d are %d missing and %d told twice: %.200q", state.Seq, state.Missing, state.Repeated, payload)
			missing, repeated = state.Missing, state.Repeated
		}
	})
}

// lag is the life of one who is too slow until the server throws it out, and then comes back
// for all it missed.
func (m *member) lag(ctx context.Context) {
	state := wsclient.State{Whole: true, Seq: m.seq}
	query := "?extended=true"
	if m.seq > 0 {
		query += "&resume_from=" + strconv.FormatUint(m.seq, 10)
	}
	c := m.join(ctx, query, wsclient.Options{ReceiveBuffer: 64 << 10})
	if c == nil {
		return
	}
	defer c.Close()
	defer func() { m.seq = state.Seq }()
	if m.seq > 0 {
		m.soak.resumed.Add(1)
		// What was missed comes as fast as it is read.
		const catchUp = 20 * time.Second
		err := m.stay(ctx, c, catchUp, func(batch []byte, _ int) { m.fold(&state, batch) })
		if err != nil {
			m.soak.fault("who was thrown out and came back for what follows %d was thrown out again: %v", m.seq, err)
			return
		}
		if state.Resumed != 1 || state.Resyncs != 0 {
			m.soak.fault("who came back at %d was told so %d times, and %d times to start over", m.seq, state.Resumed, state.Resyncs)
		}
	}
	const long = 10 * time.Minute // a ring is lapped in one
	err := m.stay(ctx, c, long, paced(ctx, slowExtendedBytes, func(batch []byte) { m.fold(&state, batch) }))
	switch end := (*wsclient.CloseError)(nil); {
	case ctx.Err() != nil:
	case errors.Is(err, syscall.ECONNRESET): // there was no frame boundary to close at
		m.soak.cut.Add(1)
	case !errors.As(err, &end) || end.Code != closeSlow:
		m.soak.fault("a slow subscriber was not closed with 4008 but ended with %v", err)
	case !strings.HasSuffix(end.Reason, fmt.Sprintf("last_seq=%d", state.Seq)):
		m.soak.fault("who has seen %d was closed with %q", state.Seq, end.Reason)
	default:
		m.soak.kicked.Add(1)
	}
}
