package stream

import (
	"bufio"
	"bytes"
	"io"
	"sync"
	"time"

	"github.com/fasthttp/websocket"

	"ledgerd/httpd/stream/frame"
)

const (
	// readerBytes is the reader's buffer: clients say little. What is longer is read straight
	// to where it belongs.
	readerBytes = 256
	// drainBytes is the most that is read from a peer whose connection is ending.
	drainBytes = 1 << 20
)

// read handles what the client sends until the connection ends, from either side.
func (c *connection) read(early []byte) {
	var from io.Reader = c.conn
	if len(early) > 0 {
		from = io.MultiReader(bytes.NewReader(early), from)
	}
	r := bufio.NewReaderSize(from, readerBytes)
	end := c.listen(r)
	c.outbox.close(*end)
	if end.reason == reasonClient || end.reason == endGone.reason || end.reason == endSilent.reason {
		return // nothing more comes: the socket is closed as soon as the writer is done
	}
	// What the peer still sends is read for a moment: the kernel would answer it with a
	// reset, which can overtake the close frame.
	_ = c.conn.SetReadDeadline(time.Now().Add(closeWait))
	_, _ = io.Copy(io.Discard, io.LimitReader(r, drainBytes))
}

// listen waits for what the client sends, has it handled, and returns how the connection ends.
// This is where an idle connection is: the little that the goroutine does here fits in the
// smallest of stacks, and what needs more is done on another one, which goes when it is done.
func (c *connection) listen(r *bufio.Reader) (end *closing) {
	in := &input{connection: c, r: r}
	in.message.Grow = in.grow
	defer func() { c.hub.memory.Hold(-in.held) }()
	for {
		if _, err := r.Peek(1); err != nil {
			return endAfter(err)
		}
		var handling sync.WaitGroup
		handling.Go(in.handleFrames)
		if handling.Wait(); in.end != nil {
			return in.end
		}
	}
}

// input is what a client sends.
type input struct {
	*connection
	r       *bufio.Reader
	message frame.Message
	held    int      // bytes that the message takes
	end     *closing // how the connection ends, once it does
}

// grow takes memory for a message.
func (in *input) grow(bytes int) error {
	in.hub.memory.Hold(bytes)
	if in.held += bytes; !in.hub.memory.Allows(in.held) {
		return &endMemory
	}
	return nil
}

// handleFrames handles the frames that are there, at least one.
func (in *input) handleFrames() {
	defer in.endOnPanic()
	for ok := true; ok && in.end == nil; ok = in.r.Buffered() > 0 {
		in.end = in.handleFrame()
		in.extendDeadline()
	}
}

// handleFrame handles one frame, and returns how the connection ends if it does.
func (in *input) handleFrame() *closing {
	h, err := frame.ReadHeader(in.r)
	switch {
	case err != nil:
	case !in.frames.takeToken():
		return &endRate
	case h.Op.IsControl():
		return in.handleControl(h)
	default:
		err = in.message.Read(h, in.r, func(text []byte) {
			if !in.outbox.isClosing() { // a connection that ends must not enter the hub again
				in.speaker.handle(text)
			}
		})
		in.hub.memory.Hold(in.message.Size() - in.held)
		in.held = in.message.Size()
	}
	return endAfter(err)
}

// handleControl answers a control frame, and returns how the connection ends if it is a close frame:
// with the client's own code.
func (in *input) handleControl(h frame.Header) *closing {
	payload, err := h.ReadControl(in.r)
	switch {
	case err != nil:
	case h.Op == websocket.PingMessage:
		in.outbox.put(nil, single(frame.AppendControl(nil, websocket.PongMessage, payload)))
	case h.Op == websocket.CloseMessage:
		var code uint16
		if code, err = frame.ParseClose(payload); err == nil {
			return &closing{reason: reasonClient, code: code}
		}
	}
	return endAfter(err)
}

// extendDeadline gives the peer time until it counts as gone. On a connection that is
// ending the writer sets the last deadline, and nothing extends it; whichever of the two
// comes later keeps it short.
func (c *connection) extendDeadline() {
	if c.outbox.isClosing() {
		return
	}
	// A socket that takes no deadline is closed; the next read says so.
	_ = c.conn.SetReadDeadline(time.Now().Add(silenceTimeout))
	if c.outbox.isClosing() {
		_ = c.conn.SetReadDeadline(time.Now().Add(closeWait))
	}
}
