package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/fasthttp/websocket"

	"ledgerd/bench/listen"
)

// talker is one connection of some kind of client. One goroutine reads it, any may say something.
type talker interface {
	// read returns the next text message, valid until the next read. The server's close frame
	// is a *listen.CloseError, anything else the end of the socket.
	read() ([]byte, error)
	say(text string) error
	stall(on bool) // while it is on nothing is read from the socket, and read is not called
	leave()        // as the protocol has it; what is still on its way may be read
	cut()          // without a word
	port() int     // of its own end
}

// dialer connects one kind of client. A small buffer is what the kernel holds for the reader, where
// that can be said.
type dialer func(address string, smallBuffer bool) (talker, error)

// smallBufferBytes makes a client that does not read a slow one soon.
const smallBufferBytes = 8 << 10

// ownTalker is the repository's own client.
type ownTalker struct{ *listen.Conn }

func dialOwn(address string, smallBuffer bool) (talker, error) {
	o := listen.Options{Timeout: patience}
	if smallBuffer {
		o.ReceiveBuffer = smallBufferBytes
	}
	conn, err := listen.Dial(context.Background(), address, o)
	if err != nil {
		return nil, err
	}
	return ownTalker{conn}, nil
}

func (o ownTalker) read() ([]byte, error) {
	if err := o.NetConn().SetReadDeadline(time.Now().Add(patience)); err != nil {
		return nil, err
	}
	p, err := o.Next()
	return p.Payload, err
}

func (o ownTalker) say(text string) error { return o.WriteText([]byte(text)) }
func (o ownTalker) stall(bool)            {}
func (o ownTalker) leave()                { _ = o.Close() }
func (o ownTalker) cut()                  { _ = o.NetConn().Close() }
func (o ownTalker) port() int             { return o.NetConn().LocalAddr().(*net.TCPAddr).Port }

// libraryTalker is the client of fasthttp/websocket, as most programs in Go are.
type libraryTalker struct {
	*websocket.Conn
	writing sync.Mutex
}

func dialLibrary(address string, smallBuffer bool) (talker, error) {
	d := websocket.Dialer{HandshakeTimeout: patience}
	d.NetDial = func(network, host string) (net.Conn, error) {
		plain := net.Dialer{Timeout: patience}
		if smallBuffer {
			plain.Control = func(_, _ string, raw syscall.RawConn) error {
				var failed error
				err := raw.Control(func(fd uintptr) {
					failed = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, smallBufferBytes)
				})
				return errors.Join(err, failed)
			}
		}
		return plain.Dial(network, host)
	}
	conn, response, err := d.Dial(address, nil)
	// A node that begins to stop in the midst of a handshake says 101 and "Connection: close", which the library does not take.
	if errors.Is(err, websocket.ErrBadHandshake) && response.StatusCode != http.StatusSwitchingProtocols {
		body, _ := io.ReadAll(response.Body)
		return nil, &listen.RefusedError{Status: response.StatusCode, Body: string(body)}
	}
	if err != nil {
		return nil, err
	}
	return &libraryTalker{Conn: conn}, nil
}

func (l *libraryTalker) read() ([]byte, error) {
	if err := l.SetReadDeadline(time.Now().Add(patience)); err != nil {
		return nil, err
	}
	kind, text, err := l.ReadMessage()
	var end *websocket.CloseError
	switch {
	case errors.As(err, &end) && end.Code != websocket.CloseAbnormalClosure:
		return nil, &listen.CloseError{Code: uint16(end.Code), Reason: end.Text}
	case errors.As(err, &end):
		return nil, io.ErrUnexpectedEOF // no close frame came
	case err == nil && kind != websocket.TextMessage:
		return nil, fmt.Errorf("a message of kind %d", kind)
	}
	return text, err
}

func (l *libraryTalker) say(text string) error {
	l.writing.Lock()
	defer l.writing.Unlock()
	return l.WriteMessage(websocket.TextMessage, []byte(text))
}

func (l *libraryTalker) leave() {
	_ = l.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(websocket.CloseNormalClosure, ""), time.Now().Add(patience))
}

func (l *libraryTalker) stall(bool) {}
func (l *libraryTalker) cut()       { _ = l.NetConn().Close() }
func (l *libraryTalker) port() int  { return l.NetConn().LocalAddr().(*net.TCPAddr).Port }

// kinds returns the kinds of clients, and why one of them is not there.
func kinds(t *testing.T) (dialers map[string]dialer, missing map[string]string) {
	dialers = map[string]dialer{"own": dialOwn, "library": dialLibrary}
	missing = map[string]string{}
	if b, why := newBridge(t); b != nil {
		dialers["ws"] = b.dial
	} else {
		missing["ws"] = why
	}
	return dialers, missing
}
