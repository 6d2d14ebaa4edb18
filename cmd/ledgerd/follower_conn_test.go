package main

import (
	"context"
	"net"
	"testing"
	"time"

	"ledgerd/bench/listen"
)

// talker is one connection of some kind of client. One goroutine reads it, any may write.
type talker interface {
	// read returns the next text message, valid until the next read. The server's close frame
	// is a *listen.CloseError, anything else the end of the socket.
	read() ([]byte, error)
	port() int // of its own end

	WriteText(text []byte) error
	Close() error // with a close frame; what is still on its way may be read
	Reset()       // without one
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

// Reset drops the connection without a close frame, as a host does that lost it.
func (o ownTalker) Reset() {
	_ = o.NetConn().(*net.TCPConn).SetLinger(0)
	_ = o.NetConn().Close()
}

func (o ownTalker) port() int { return o.NetConn().LocalAddr().(*net.TCPAddr).Port }

// clientKinds are the repository's own client and npm's ws.
var clientKinds = []string{"own", "ws"}

// dialers returns the kinds of clients. Where one is not there the own takes its place, and missing says why.
func dialers(t *testing.T) (kinds map[string]dialer, missing map[string]string) {
	kinds, missing = map[string]dialer{"own": dialOwn, "ws": dialOwn}, map[string]string{}
	if open, why := startNPM(t); open != nil {
		kinds["ws"] = open
	} else {
		missing["ws"] = why
	}
	return kinds, missing
}
