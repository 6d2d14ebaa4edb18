package listen

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"net/url"
	"sync"
	"sync/atomic"
	"time"
)

// subscriber is one of a pool, through all of its connections.
type subscriber struct {
	pool  *Pool
	index int
	query url.Values
	local netip.Addr

	mu            sync.Mutex
	stream        Stream // the present connection, nil: none
	frames, bytes int64
	ended         error // why there is no connection
	book          book

	// The reader's: the time of the slot that comes now.

	slot uint64
	due  time.Time
}

func newSubscriber(p *Pool, i int) *subscriber {
	s := &subscriber{pool: p, index: i, query: url.Values{}}
	if p.config.Query != nil {
		maps.Copy(s.query, p.config.Query(i))
	}
	if p.config.Local != nil {
		s.local = p.config.Local(i)
	}
	asks := func(name string) bool { return s.query.Get(name) != "" }
	s.book.all = !asks("pubkeys") && !asks("programs") && !asks("wallets") && !asks("mode")
	s.book.shares = asks("commitment") && s.query.Get("commitment") != "processed"
	s.book.whole = s.book.all && !s.book.shares
	if p.config.Mode == CheckNumbers {
		s.query.Set("extended", "true")
	}
	return s
}

// A subscriber comes back after reconnectPause, which doubles with every try that fails up to mostReconnectPause. Both vary by
// half, so that not all come at once.
const (
	reconnectPause     = 100 * time.Millisecond
	mostReconnectPause = 5 * time.Second
)

// run connects and reads until the pool ends, or until the connection does if the pool does not reconnect. It calls tried
// after the first try to connect.
func (s *subscriber) run(tried func()) {
	defer tried()
	for pause := reconnectPause; ; {
		stream, err := s.dial()
		dropped := false
		if err == nil {
			pause = reconnectPause
			s.connected(stream)
			tried()
			dropped, err = s.read(stream)
		}
		s.disconnected(stream != nil, dropped, err)
		tried()
		if !s.pool.config.Reconnect || s.pool.ctx.Err() != nil {
			return
		}
		if dropped { // on purpose: it comes back at once
			continue
		}
		select {
		case <-time.After(pause/2 + rand.N(pause)):
			pause = min(2*pause, mostReconnectPause)
		case <-s.pool.ctx.Done():
			return
		}
	}
}

// dial connects when it is the subscriber's turn.
func (s *subscriber) dial() (Stream, error) {
	p := s.pool
	select {
	case p.turns <- struct{}{}:
		defer func() { <-p.turns }()
	case <-p.ctx.Done():
		return nil, p.ctx.Err()
	}
	if p.config.Dial != nil {
		return p.config.Dial(s.index)
	}
	from, opening := s.book.seq, p.config.Opening
	if from > 0 && opening == nil {
		s.query.Set("resume_from", fmt.Sprint(from))
	}
	began := time.Now()
	conn, err := Dial(p.ctx, p.config.URL+"?"+s.query.Encode(), Options{Local: s.local, Timeout: p.config.Timeout})
	if err != nil {
		return nil, err
	}
	p.handshakes.record(time.Since(began), 1)
	if opening != nil {
		_ = conn.WriteText(opening) // whoever reads sees that the socket is broken
	}
	if from > 0 && opening != nil {
		s.book.behind = true
		_ = conn.WriteText(fmt.Appendf(nil, `{"type":"resume","id":1,"from_seq":%d}`, from))
	}
	return conn, nil
}

func (s *subscriber) connected(stream Stream) {
	s.set(stream, nil)
	s.pool.mu.Lock()
	defer s.pool.mu.Unlock()
	s.pool.counts.Connected++
}

func (s *subscriber) set(stream Stream, ended error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stream, s.ended = stream, ended
}

// disconnected counts how a connection ended, or why there was none. dropped says that this was on purpose.
func (s *subscriber) disconnected(connected, dropped bool, err error) {
	s.set(nil, err)
	p := s.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	if connected {
		p.counts.Connected--
	}
	var refused *RefusedError
	var closed CloseError
	switch end := &closed; {
	case dropped || p.ctx.Err() != nil:
		return
	case errors.As(err, &refused):
		p.counts.Refused[refused.Status]++
	case !connected:
		p.counts.Failed++
	default:
		if !errors.As(err, &end) {
			err = fmt.Errorf("a connection broke: %w", err)
		}
		p.counts.Closes[int(end.Code)]++ // 0: it broke
	}
	if p.counts.Why == nil {
		p.counts.Why = err
	}
}

// read reads a stream until it ends. dropped says that the subscriber did that to resume.
func (s *subscriber) read(stream Stream) (dropped bool, err error) {
	var drops atomic.Bool
	leave := func() {
		if conn, ok := stream.(*Conn); ok && s.index%2 == 1 {
			conn.Reset()
			return
		}
		_ = stream.Close() // the server may have been first
	}
	stop := context.AfterFunc(s.pool.ctx, leave)
	if every := s.pool.config.ResumeEvery; every > 0 {
		timer := time.AfterFunc(every/2+rand.N(every), func() {
			drops.Store(true)
			leave()
		})
		defer timer.Stop()
	}
	err = stream.Drain(s.take)
	if stop() {
		leave()
	}
	return drops.Load(), err
}

// take counts frames that arrived together.
func (s *subscriber) take(b Batch) {
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.frames += int64(b.Frames)
	s.bytes += int64(len(b.Data))
	switch s.pool.config.Mode {
	case TimeSlots:
		s.timeSlots(b, now)
	case CheckNumbers:
		s.checkNumbers(b, now)
	}
}

// timeSlots counts how late the updates are. All frames of a batch count as the first one does, which is too late if
// anything.
func (s *subscriber) timeSlots(b Batch, now time.Time) {
	if first := b.first(); isUpdate(first) {
		s.enter(numberAfter(first, `,"lamports":`), nil)
		s.late(now, b.Frames)
	}
}

// checkNumbers enters frames into the book.
func (s *subscriber) checkNumbers(b Batch, now time.Time) {
	run := 0 // updates of the same slot
	b.Each(func(payload []byte) {
		if isUpdate(payload) {
			slot := numberAfter(payload, `,"slot":`)
			if slot != s.slot {
				s.late(now, run)
				run = 0
				s.enter(slot, payload)
			}
			run++
			s.book.update(slot, numberAfter(payload, `,"seq":`))
			return
		}
		m := parseMessage(payload)
		if m.Type != "slot_end" {
			s.book.take(&m)
			return
		}
		e := slotEnd{m.Slot, m.Seq}
		if got, least, again := s.book.end(e); !again {
			if later, others := s.pool.arrivals.end(e, now, got, least); others {
				s.pool.skew.record(later, 1)
			}
		}
	})
	s.late(now, run)
}

// enter notes when the updates of a slot were due, of which the payload is the first.
func (s *subscriber) enter(slot uint64, payload []byte) {
	if slot == s.slot {
		return
	}
	s.slot = slot
	if s.pool.config.Due != nil {
		s.due = s.pool.config.Due(slot)
	} else {
		s.due, _ = time.Parse(time.RFC3339, blockTime(payload)) // zero: it is not known
	}
}

// late counts updates of the slot that comes now. A block time that is far from this machine's clock says nothing.
func (s *subscriber) late(now time.Time, updates int) {
	took := now.Sub(s.due)
	if updates == 0 || s.due.IsZero() || s.pool.config.Due == nil && (took < -time.Second || took > time.Minute) {
		return
	}
	s.pool.late.record(took, updates)
}

// received returns how many frames came so far, and why no more do.
func (s *subscriber) received() (frames int64, ended error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.frames, s.ended
}

// write sends a text frame.
func (s *subscriber) write(text []byte) error {
	s.mu.Lock()
	stream := s.stream
	s.mu.Unlock()
	if conn, ok := stream.(*Conn); ok {
		return conn.WriteText(text)
	}
	return errors.New("there is no connection that takes texts")
}
