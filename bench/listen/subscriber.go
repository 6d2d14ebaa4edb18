package listen

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"sync"
	"time"

	"ledgerd/engine/ledger/wait"
)

// subscriber is one of a pool, through all of its connections.
type subscriber struct {
	pool  *Pool
	index int
	query url.Values

	mu            sync.Mutex
	stream        Stream // the present connection, nil: none
	ended         error  // why there is none
	frames, bytes int64
	book          book
}

func newSubscriber(p *Pool, i int) *subscriber {
	s := &subscriber{pool: p, index: i, query: url.Values{}}
	if p.config.Query != nil {
		maps.Copy(s.query, p.config.Query(i))
	}
	asks := func(name string) bool { return s.query.Get(name) != "" }
	isFiltered := asks("pubkeys") || asks("programs") || asks("wallets") || asks("mode")
	s.book.whole = !isFiltered && cmp.Or(s.query.Get("commitment"), "processed") == "processed"
	if p.config.CheckNumbers {
		s.query.Set("extended", "true")
	}
	return s
}

// A subscriber comes back after a pause of at least leastPause, and of up to mostPause when many tries fail.
const (
	leastPause = 50 * time.Millisecond
	mostPause  = 5 * time.Second
)

// run connects and reads until the pool ends, or until the connection does if the pool does not reconnect. It calls tried
// after the first try to connect.
func (s *subscriber) run(tried func()) {
	_ = wait.Sleep(s.pool.ctx, s.pool.config.Ramp*time.Duration(s.index)/time.Duration(s.pool.config.Sockets))
	for pause := (wait.Backoff{Min: leastPause, Max: mostPause}); ; {
		stream, err := s.dial()
		connected := err == nil
		if connected {
			s.set(stream, nil)
			tried()
			pause.Reset()
			err = s.read(stream)
		}
		if s.pool.ctx.Err() == nil {
			s.pool.countEnd(connected, err)
		}
		s.set(nil, err) // who sees that finds the reason counted
		tried()
		if !s.pool.config.Reconnect || pause.Wait(s.pool.ctx) != nil {
			return
		}
	}
}

func (s *subscriber) set(stream Stream, ended error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stream, s.ended = stream, ended
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
	if p.config.Connect != nil {
		return p.config.Connect()
	}
	from := s.book.seq
	if from > 0 && p.config.Opening == nil {
		s.query.Set("resume_from", fmt.Sprint(from))
	}
	o := Options{Dial: p.config.Dial, Index: s.index, ReadBuffer: readBufferBytes(len(p.subscribers))}
	if n := len(p.config.Headers); n > 0 {
		o.Header = p.config.Headers[s.index%n]
	}
	if s.index < p.config.Throttled {
		o.Throttle = p.config.Throttle
	}
	conn, err := Dial(p.ctx, p.config.URL+"?"+s.query.Encode(), o)
	if err != nil {
		return nil, err
	}
	if p.config.Opening != nil {
		for _, message := range p.config.Opening(s.index) {
			_ = conn.WriteText(message) // whoever reads sees that the socket is broken
		}
		if from > 0 {
			s.book.behind = true
			_ = conn.WriteText(fmt.Appendf(nil, `{"type":"resume","id":1,"from_seq":%d}`, from))
		}
	}
	if size := p.config.FrameBytes; size > 0 && !p.isSample(s.index) {
		return drain(conn.NetConn(), conn.ws, 1, size), nil
	}
	return conn, nil
}

// readBufferBytes gives a few conns large buffers, and many together no more than 64 MiB.
func readBufferBytes(conns int) int { return min(64<<10, max(1<<10, 64<<20/conns)) }

// read reads a stream until it ends, with its pool at the latest.
func (s *subscriber) read(stream Stream) (err error) {
	leave := func() { _ = stream.Close() } // the server may have been first
	stop := context.AfterFunc(s.pool.ctx, leave)
	for err == nil {
		var piece Piece
		if piece, err = stream.Next(); err == nil {
			s.take(piece)
		}
	}
	if stop() {
		leave()
	}
	return err
}

// take counts what came.
func (s *subscriber) take(p Piece) {
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.frames += int64(p.Frames)
	s.bytes += int64(p.Bytes)
	switch c := &s.pool.config; {
	case !c.CheckNumbers:
	case isUpdate(p.Payload):
		s.book.update(numberAfter(p.Payload, `,"seq":`))
	default:
		var m message
		_ = json.Unmarshal(p.Payload, &m) // what is not JSON is a message without a type
		if m.Type != "slot_end" {
			s.book.take(&m)
			return
		}
		if e := (slotEnd{m.Slot, m.Seq}); !s.book.end(e) {
			s.pool.arrivals.end(e, now)
		}
	}
}

// received returns how many frames came so far, and why no more do.
func (s *subscriber) received() (frames int64, ended error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.frames, s.ended
}
