package stream

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"sync"
	"time"
	"unicode/utf8"
)

const (
	// readerBytes is the reader's buffer: clients say little. What is longer is read straight
	// to where it belongs.
	readerBytes = 256
	// keptBytes is the most room for a message that is kept for the next one.
	keptBytes = 512
	// drainBytes is the most that is read from a peer whose connection is ending.
	drainBytes = 1 << 20
)

// read handles what the client says until the connection ends, from either side.
func (s *subscriber) read(early []byte) {
	var from io.Reader = s.conn
	if len(early) > 0 {
		from = io.MultiReader(bytes.NewReader(early), from)
	}
	r := bufio.NewReaderSize(from, readerBytes)
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

// listen waits for what the client says, has it heard, and says how the connection ends. This
// is where an idle connection is: the little that the goroutine does here fits in the least
// of stacks, and what needs more is done on another.
func (s *subscriber) listen(r *bufio.Reader) (end *closing) {
	m := &messages{subscriber: s, r: r}
	for {
		if _, err := r.Peek(1); err != nil {
			return endAfter(err)
		}
		var hearing sync.WaitGroup
		hearing.Go(m.hear)
		if hearing.Wait(); m.end != nil {
			return m.end
		}
	}
}

// messages are what a client says.
type messages struct {
	*subscriber
	r    *bufio.Reader
	text []byte   // of the message that has begun
	open bool     // it has not ended
	end  *closing // how the connection ends, once it does
}

// hear handles the frames that are there, at least one.
func (m *messages) hear() {
	defer func() {
		if p := recover(); p != nil { // the connection ends, the process goes on
			m.hub.panicked(p)
			m.end = &endInternal
		}
	}()
	for ok := true; ok && m.end == nil; ok = m.r.Buffered() > 0 {
		m.end = m.hearFrame()
		m.extendDeadline()
	}
}

// hearFrame handles one frame, and says how the connection ends if it does.
func (m *messages) hearFrame() *closing {
	h, err := readHeader(m.r)
	if err != nil {
		return endAfter(err)
	}
	if !m.budget.take(time.Now()) {
		return &endRate
	}
	switch {
	case h.op.isControl():
		return m.control(h, m.r)
	case m.open != (h.op == opContinuation):
		return protocolError("a message begins or goes on where it must not")
	case h.op == opBinary:
		return &endBinary
	case h.length > uint64(maxMessageBytes-len(m.text)):
		return &endTooBig
	}
	if m.text, err = h.readPayload(m.r, m.text); err != nil {
		return endAfter(err)
	}
	if m.open = !h.fin; m.open {
		return nil
	}
	if !utf8.Valid(m.text) {
		return &endUTF8
	}
	if !m.outbox.isClosing() { // nobody is to become part of the hub again
		m.handle(m.text)
	}
	m.text = m.text[:0]
	if cap(m.text) > keptBytes {
		m.text = nil
	}
	return nil
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
