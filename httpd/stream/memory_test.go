package stream

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/valyala/fasthttp/fasthttputil"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/ledgertest"
)

// inMemory runs a test with a node whose connections are pipes, in a bubble of
// testing/synctest: time passes only while everybody waits, and nothing may still run when
// the test is over. All durations are what an operator gets who sets none.
func inMemory(t *testing.T, change func(*Config), test func(*node)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		t.Cleanup(func() { time.Sleep(time.Minute) }) // until the cleaner of its workers has slept out
		n := newNode(t, change)
		ln := &pipes{fasthttputil.NewInmemoryListener(), make(chan net.Conn)}
		n.connect = ln.connect
		n.start(ln)
		test(n)
	})
}

// pipes is a listener in memory.
type pipes struct {
	*fasthttputil.InmemoryListener // for its Accept and Close
	accepted                       chan net.Conn
}

// connect makes a connection. It holds nothing: what one end writes waits until the other reads it.
func (l *pipes) connect() (net.Conn, error) {
	if _, err := l.Dial(); err != nil {
		return nil, err
	}
	far, near := net.Pipe()
	conn := &pipe{Conn: far, near: &nearEnd{Conn: near, closed: make(chan struct{})}}
	l.accepted <- conn.near
	return conn, conn.SetDeadline(time.Now().Add(time.Hour)) // of the bubble: should a test never end
}

func (l *pipes) Accept() (net.Conn, error) {
	if _, err := l.InmemoryListener.Accept(); err != nil {
		return nil, err
	}
	return <-l.accepted, nil
}

// pipe is the client's end of a connection in memory.
type pipe struct {
	net.Conn
	near *nearEnd
}

// nearEnd is the server's end. It notes how it was closed, and what it was read into first.
// What is written to it must be whole frames, so that whatever is written next is behind one.
type nearEnd struct {
	net.Conn
	reading, closing sync.Once
	closed           chan struct{}

	head   weak.Pointer[byte] // of the buffer of the first read
	cut    bool               // the write before ended within a frame; writes come one after the other
	resets atomic.Bool        // closing is a reset
	faulty atomic.Bool        // writes panic
}

func (e *nearEnd) SetLinger(seconds int) error {
	e.resets.Store(seconds == 0)
	return nil
}

func (e *nearEnd) Read(b []byte) (int, error) {
	e.reading.Do(func() { e.head = weak.Make(&b[0]) })
	return e.Conn.Read(b)
}

func (e *nearEnd) Write(b []byte) (int, error) {
	switch {
	case e.faulty.Load():
		panic("a fault")
	case !e.cut && !bytes.HasPrefix(b, []byte("HTTP/")) && !areWhole(b):
		panic("a frame is written in part")
	}
	n, err := e.Conn.Write(b)
	e.cut = n < len(b)
	return n, err
}

// areWhole reports whether b is whole frames of the server's.
func areWhole(b []byte) bool {
	for len(b) >= 2 {
		n := 2 + int(b[1])
		switch {
		case b[1] == 126:
			n = 4 + int(b[2])<<8 + int(b[3])
		case b[1] == 127 && len(b) >= 10:
			n = 10 + int(binary.BigEndian.Uint64(b[2:]))
		}
		if n > len(b) {
			return false
		}
		b = b[n:]
	}
	return len(b) == 0
}

func (e *nearEnd) Close() error {
	e.closing.Do(func() { close(e.closed) })
	return e.Conn.Close()
}

// near is the server's end of a client in memory.
func (c *client) near() *nearEnd { return c.conn.(*pipe).near }

// Of the handshake nothing lives on with the connection. What the server reads a request
// into, which is let go of with its request, can be told by the buffers that reach the socket.
func TestAConnectionKeepsNothingOfItsHandshake(t *testing.T) {
	inMemory(t, nil, func(n *node) {
		c := n.dial("?pubkeys=" + key(1).String())
		synctest.Wait()
		for range 3 { // what is pooled survives the first two
			runtime.GC()
		}
		ledgertest.Equal(n, c.near().head.Value(), nil, "the buffer of the request, if it is kept")
		n.script.block(1, account(1, 1, programA))
		c.expect(basicFrame(account(1, 1, programA), 1))
	})
}

// What a block changed goes with the block: not who heard an account of it last, nor who has yet to
// read of that one, keeps all the others in memory.
func TestSubscribersKeepNoBlock(t *testing.T) {
	for name, asked := range map[string]request{
		"has heard":                       {narrow: true, names: setOf(pubkeys, key(1))},
		"is slow":                         {narrow: true, names: setOf(pubkeys, key(1))},
		"is slow and conflates":           {narrow: true, names: setOf(pubkeys, key(1)), conflates: true},
		"is slow, conflates and is ahead": {conflates: true, from: ledger.Some(ledger.Seq(1))},
		"is slow and reads a snapshot":    {narrow: true},
		"is slow and comes back":          {},
	} {
		l := newFakeLedger()
		h := New(Config{RecentBytes: 1, OutboxBytes: 1 << 40, Ledger: l})
		script := newScript(h, l)
		s := joined(h, asked)
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
		if name == "is slow and comes back" {
			s.handle([]byte(`{"type":"resume","from_seq":0}`))
		}
		if name == "has heard" {
			frames := s.outbox.drain()
			ledgertest.Equal(t, frames, 1, "%s: frames told", name)
		}
		script.append(2, account(3, 1, programA))
		script.reach(ledger.Finalized, 2)
		script.publish() // the first is not kept to resume from any more
		runtime.GC()
		ledgertest.Equal(t, block.Value(), nil, "a block in memory that one keeps who %s", name)
		runtime.KeepAlive(s)
		runtime.KeepAlive(h)
	}
}

// Where a block brings a subscriber as many packets as the one before, they get room at once: room that grows step by step leaves more garbage
// than it has use.
func TestAnOutboxMakesRoomForABlockAtOnce(t *testing.T) {
	const packets = 100 // for which room would grow to 143
	l := newFakeLedger()
	h := New(Config{Ledger: l})
	script := newScript(h, l)
	s := joined(h, request{narrow: true, names: setOf(programs, programA)})
	for slot := range ledger.Slot(3) {
		var accounts []ledger.Account
		for i := range packets {
			accounts = append(accounts, account(i+1, ledger.Lamports(slot+1), programA))
		}
		script.block(slot+1, accounts...)
		if room := cap(s.outbox.entries); slot > 0 && room > packets+packets/3 {
			t.Errorf("block %d: room for %d packets, want about %d", slot, room, packets)
		}
		frames := s.outbox.drain()
		ledgertest.Equal(t, frames, packets, "frames of block %d", slot)
	}
}

// Nor does one whose writer waits keep the part of a ring in memory that it was to follow from.
func TestWhoIsToFollowARingKeepsNoneOfIt(t *testing.T) {
	l := newFakeLedger()
	h := New(Config{RingBytes: blockBytes, RecentBytes: 1, Ledger: l})
	script := newScript(h, l)
	s := joined(h, request{narrow: true})
	script.block(1)
	s.handle([]byte(`{"type":"subscribe"}`))
	part, number := weak.Make(s.ring.open), s.ring.open.number
	for s.ring.oldest <= number {
		script.block(script.nextSlot(), accounts(0, 500, 1)...)
	}
	runtime.GC()
	ledgertest.Equal(t, part.Value() == nil, true, "whether the part of the ring that was the newest one is gone")
	took := s.outbox.take(s.at.at)
	must(t, took.run())
	ledgertest.Equal(t, s.at.lapped(), true, "whether it is lapped")
	_, err := s.writeRing(s.at.head())
	ledgertest.ErrorIs(t, err, &endSlow, "what comes of it")
	runtime.KeepAlive(s)
}

// TestHeldBytesAreWhatIsAllocated compares them with the growth of the heap, where all levels keep the same blocks for resumes, and where they keep
// others in part.
func TestHeldBytesAreWhatIsAllocated(t *testing.T) {
	const blocks, updates, data = 200, 100, 1000
	for _, lag := range []ledger.Version{0, 10} {
		h, before := New(Config{Ledger: newFakeLedger(), RecentBytes: blocks / 4 * updates * (updateBytes + data)}), ledgertest.HeapBytes()
		for version := range ledger.Version(blocks) {
			r := &ledger.Record{Version: version + 1, Kind: ledger.BlockRecord, Slot: ledger.Slot(version + 1), FirstSeq: ledger.Seq(updates*version + 1)}
			for n := range updates {
				a := account(n, 1, programA)
				a.Known, a.Data = ledger.FieldsShown|ledger.FieldData, ledger.NewData(make([]byte, data))
				r.Updates = append(r.Updates, ledger.Update{Account: a})
			}
			head := &ledger.Head{HasBlock: true}
			for level := range ledger.Commitments {
				head.Tips[level].Version = max(r.Version, lag*ledger.Version(level)) - lag*ledger.Version(level)
			}
			h.Publish(&ledger.Publication{Head: head, Records: []*ledger.Record{r}})
		}
		got, want := h.heldBytes(), float64(ledgertest.HeapBytes()-before)
		if got < 0.7*want || got > 1.3*want {
			t.Errorf("levels %d blocks behind each other: %.1f MB are told, %.1f MB were allocated", lag, got/1e6, want/1e6)
		}
		runtime.KeepAlive(h)
	}
}
