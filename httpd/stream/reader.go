package stream

import (
	"time"
	"unicode/utf8"

	"github.com/fasthttp/websocket"
)

// maxMessageBytes is the largest message a client may send.
const maxMessageBytes = 64 << 10

// Every frame a client sends, pings too, takes from its budget.
const (
	budgetBurst     = 100
	budgetPerSecond = 20
)

// budget is a token bucket. The reader alone uses it.
type budget struct {
	tokens float64
	filled time.Time
}

// take spends one token; false if there is none.
func (b *budget) take(now time.Time) bool {
	if b.filled.IsZero() {
		b.tokens = budgetBurst
	} else {
		b.tokens = min(budgetBurst, b.tokens+now.Sub(b.filled).Seconds()*budgetPerSecond)
	}
	b.filled = now
	if b.tokens < 1 {
		return false
	}
	b.tokens--
	return true
}

// read is the reader's goroutine: it handles what the client says until the connection
// ends, from either side.
func (s *subscriber) read() {
	defer func() {
		if p := recover(); p != nil {
			s.hub.panicked(p)
			s.outbox.close(closing{code: closeInternal, text: "internal error"})
		}
	}()
	s.conn.SetReadLimit(maxMessageBytes)
	s.conn.SetPingHandler(func(data string) error {
		if s.heard() {
			s.outbox.put(0, one(appendControl(nil, pongFrame, []byte(data))))
		}
		return nil
	})
	s.conn.SetPongHandler(func(string) error {
		s.heard()
		return nil
	})
	s.conn.SetCloseHandler(func(code int, _ string) error {
		if code == websocket.CloseNoStatusReceived {
			code = closeNormal
		}
		s.outbox.close(closing{code: uint16(code)})
		return nil
	})
	s.extendDeadline()
	for {
		kind, text, err := s.conn.ReadMessage()
		if err != nil {
			// The library has told the peer what it did wrong, or the peer is gone.
			s.outbox.close(closing{})
			return
		}
		if !s.heard() {
			continue
		}
		switch {
		case kind != websocket.TextMessage:
			s.outbox.close(closing{code: closeUnsupported, text: "only text messages are understood"})
		case !utf8.Valid(text):
			s.outbox.close(closing{code: closeBadUTF8, text: "a message is not UTF-8"})
		default:
			s.handle(text)
		}
	}
}

// heard notes that the peer is alive and takes from its budget; false if that is used up.
func (s *subscriber) heard() bool {
	s.extendDeadline()
	if s.budget.take(time.Now()) {
		return true
	}
	s.outbox.close(closing{code: closePolicy, text: "too many messages"})
	return false
}

// extendDeadline gives the peer time until it counts as gone. On a connection that is
// ending the writer sets the last deadline; whoever of the two comes later keeps it short.
func (s *subscriber) extendDeadline() {
	// A socket that takes no deadline is closed; the next read says so.
	_ = s.conn.SetReadDeadline(time.Now().Add(s.hub.config.SilenceTimeout))
	if s.outbox.isClosing() {
		_ = s.conn.SetReadDeadline(time.Now().Add(closeWait))
	}
}
