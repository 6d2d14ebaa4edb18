package stream

import (
	"fmt"
	"net"
	"runtime"
	"testing"
	"weak"

	"ledgerd/engine/ledger"
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
	c.expect(basicFrame(account(1, 1, programA), 1))
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

// What a block changed goes with the block: not who heard an account of it last, nor who has yet to
// read of that one, keeps all the others in memory.
func TestSubscribersKeepNoBlock(t *testing.T) {
	tests := map[string]query{
		"has heard":             {wants: wants{names: names{pubkeys: {key(1)}}}},
		"is slow":               {wants: wants{names: names{pubkeys: {key(1)}}}},
		"is slow and conflates": {wants: wants{names: names{pubkeys: {key(1)}}}, conflates: true},
		"is slow, conflates and is ahead": {wants: wants{everything: true}, conflates: true,
			resume: ledger.Some(ledger.Seq(1))},
		"is slow and reads a snapshot": {},
	}
	for name, asked := range tests {
		l := newFakeLedger()
		h := New(Config{RecentBytes: 1, Ledger: l})
		script := newScript(h, l)
		s := &subscriber{hub: h, wants: asked.wants, outbox: newOutbox(1<<40, unlimited()), seat: &seat{peer: newPeer()}}
		s.outbox.conflates = asked.conflates
		h.join(s, asked.resume)
		var block weak.Pointer[ledger.Update]
		publish := func() error {
			r := script.append(1, account(1, 1, programA), account(2, 1, programA))
			block = weak.Make(&r.Updates[0])
			script.reach(ledger.Finalized, 1)
			script.publish()
			return nil
		}
		if name == "is slow and reads a snapshot" {
			script.block(0, account(1, 2, programA))
			l.asked = publish
			s.handle(fmt.Appendf(nil, `{"type":"subscribe","snapshot":true,"pubkeys":%s}`, list(key(1))))
			l.asked = nil
		} else {
			_ = publish()
		}
		if name == "has heard" {
			if frames, _, _ := s.outbox.drain(); frames != 1 {
				t.Fatalf("%s: told %d frames, want 1", name, frames)
			}
		}
		script.append(2, account(3, 1, programA))
		script.reach(ledger.Finalized, 2)
		script.publish() // the first is not kept to resume from any more
		runtime.GC()
		if block.Value() != nil {
			t.Errorf("one who %s keeps a block in memory", name)
		}
		runtime.KeepAlive(s)
		runtime.KeepAlive(h)
	}
}
