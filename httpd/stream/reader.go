package stream

import (
	"bufio"
	"errors"
	"io"
	"net"
	"time"
	"unicode/utf8"
)

// Every frame a client sends, pings and fragments too, takes from its budget.
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

// charge spends tokens, perhaps more than there are.
func (b *budget) charge(tokens int) { b.tokens -= float64(tokens) }

const (
	// readerBytes is the reader's buffer: clients say little.
	readerBytes = 512
	// drainBytes is the most that is read from a peer whose connection is ending.
	drainBytes = 1 << 20
)

// read is the reader's goroutine: it handles what the client says until the connection
// ends, from either side.
func (s *subscriber) read() {
	r := bufio.NewReaderSize(s.conn, readerBytes)
	end := s.listen(r)
	s.outbox.close(*end)
	if end.reason == reasonClient || end.reason == reasonGone || end.reason == reasonSilent {
		return // nothing more comes: the socket is closed as soon as the writer is done
	}
	// What the peer still sends is read for a moment: the kernel would answer it with a
	// reset, which can overtake the close frame.
	_ = s.conn.SetReadDeadline(time.Now().Add(closeWait))
	_, _ = io.Copy(io.Discard, io.LimitReader(r, drainBytes))
}

// listen handles frames until one ends the connection, and says how it ends.
func (s *subscriber) listen(r *bufio.Reader) (end *closing) {
	defer func() {
		if p := recover(); p != nil { // the connection ends, the process goes on
			s.hub.panicked(p)
			end = &endInternal
		}
	}()
	var message []byte
	open := false // a message has begun and not ended
	for {
		s.extendDeadline()
		h, err := readHeader(r)
		if err != nil {
			return endAfter(err)
		}
		if !s.budget.take(time.Now()) {
			return &endRate
		}
		switch {
		case h.op.isControl():
			if end := s.control(h, r); end != nil {
				return end
			}
			continue
		case open != (h.op == opContinuation):
			return protocolError("a message begins or goes on where it must not")
		case h.op == opBinary:
			return &endBinary
		case h.length > uint64(maxMessageBytes-len(message)):
			return &endTooBig
		}
		if message, err = h.readPayload(r, message); err != nil {
			return endAfter(err)
		}
		if open = !h.fin; open {
			continue
		}
		if !utf8.Valid(message) {
			return &endUTF8
		}
		s.handle(message)
		message = message[:0]
		if cap(message) > readerBytes*8 {
			message = nil
		}
	}
}

// control answers a control frame, and says how the connection ends if it is a close frame.
func (s *subscriber) control(h frameHeader, r *bufio.Reader) *closing {
	payload, err := h.readPayload(r, nil)
	switch {
	case err != nil:
		return endAfter(err)
	case h.op == opClose:
		return answerToClose(payload)
	case h.op == opPing:
		s.outbox.put(one(appendControl(nil, opPong, payload), 0))
	}
	return nil
}

// endAfter says how the connection ends after a failed read.
func endAfter(err error) *closing {
	var end *closing
	var timeout net.Error
	switch {
	case errors.As(err, &end):
		return end
	case errors.As(err, &timeout) && timeout.Timeout():
		return &endSilent
	}
	return &endGone
}

// extendDeadline gives the peer time until it counts as gone. On a connection that is
// ending the writer sets the last deadline, and nothing extends it; whoever of the two
// comes later keeps it short.
func (s *subscriber) extendDeadline() {
	if s.outbox.isClosing() {
		return
	}
	// A socket that takes no deadline is closed; the next read says so.
	_ = s.conn.SetReadDeadline(time.Now().Add(s.hub.config.SilenceTimeout))
	if s.outbox.isClosing() {
		_ = s.conn.SetReadDeadline(time.Now().Add(closeWait))
	}
}
