package stream

import (
	"net"
	"runtime"
	"testing"
	"weak"
)

// Of the handshake nothing lives on with the connection. What the server reads a request
// into, which is let go of with its request, can be told by the buffers that reach the socket.
func TestAConnectionKeepsNothingOfItsHandshake(t *testing.T) {
	n := newNode(t, timeless, nil)
	ln := &pipes{accepted: make(chan net.Conn), closed: make(chan struct{})}
	watched := make(chan *watched, 1)
	n.connect = ln.connect
	n.start(watching{ln, watched})
	c := n.dial("?pubkeys=" + key(1).String())
	head := (<-watched).head
	eventually(t, "the buffer of the request is gone", func() bool {
		runtime.GC() // pools keep what is put back for two of them
		return head.Value() == nil
	})
	n.script.block(1, account(1, 1, programA))
	c.expect(literalFrame(account(1, 1, programA), 1))
}

// watching notes what connections are first read into.
type watching struct {
	net.Listener
	conns chan *watched
}

func (l watching) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &watched{Conn: conn, read: l.conns}, nil
}

type watched struct {
	net.Conn
	read chan *watched // told when head is known
	head weak.Pointer[byte]
}

func (w *watched) Read(p []byte) (int, error) {
	if w.read != nil {
		w.head = weak.Make(&p[0])
		w.read <- w
		w.read = nil
	}
	return w.Conn.Read(p)
}
