package stream

import (
	"testing"
	"time"
)

// What is made for one connection alone counts over all of them, until it was taken or dropped.
func TestUnsharedBytesAreCountedOverAllOutboxes(t *testing.T) {
	all := unshared{limitBytes: 100}
	a, b := newOutbox(1000, &all), newOutbox(1000, &all)
	own := func(n int) piece { return piece{data: make([]byte, n), frames: 1, unshared: true} }
	a.put(own(40), one(make([]byte, 500), 0)) // the shared piece does not count
	b.put(own(50))
	if got := all.bytes.Load(); got != 90 {
		t.Fatalf("%d unshared bytes wait, want 90", got)
	}
	if b.hasRoom([]piece{own(20)}) || !b.hasRoom([]piece{own(10)}) {
		t.Errorf("10 more bytes have room and 20 have not: got the contrary")
	}
	a.take(nil, 0)
	if got := all.bytes.Load(); got != 50 {
		t.Errorf("%d unshared bytes wait after a was taken, want 50", got)
	}
	b.put(own(2000)) // more than b holds: it is dropped
	if got := all.bytes.Load(); got != 0 || !b.isClosing() {
		t.Errorf("%d unshared bytes wait after b overflowed, closing %v", got, b.isClosing())
	}
	c := newOutbox(1000, &all)
	c.put(own(30))
	c.discard()
	c.put(own(30))
	if got := all.bytes.Load(); got != 0 {
		t.Errorf("%d unshared bytes wait after the connection was gone", got)
	}
}

// A snapshot that would not fit beside what waits for other slow sockets is refused.
func TestSnapshotsAreRefusedWhenTooManyWait(t *testing.T) {
	n := serve(t, func(c *Config) { c.SnapshotBytes = 1 })
	c := n.dial("?mode=none")
	c.send(`{"type":"subscribe","id":1,"snapshot":true,"pubkeys":%s}`, list(key(1)))
	c.endsWith(closeTryAgain, endMemory.text)
}

// Large snapshots use up a client's budget.
func TestSnapshotsCostTheirSize(t *testing.T) {
	now := time.Now()
	var b budget
	b.take(now)
	b.charge(budgetBurst)
	if b.take(now) {
		t.Error("a client that has spent its budget on snapshots may go on at once")
	}
}
