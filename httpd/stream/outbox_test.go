package stream

import (
	"testing"
	"testing/synctest"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/ledgertest"
	"ledgerd/httpd/budget"
)

func unlimited() *budget.Part { return limited(1 << 60) }

// noDigest is what an outbox that conflates has, while nobody writes.
func noDigest() error { return errNoDigest }

func limited(bytes int64) *budget.Part { return &budget.New(bytes).Sockets }

// packetOf returns a packet that counts for so many bytes in an outbox.
func packetOf(size int, seq ledger.Seq) *packet {
	return &packet{data: make([]byte, size-packetBytes-entryBytes), tally: tally{frames: 1, seq: seq}}
}

// drain takes all that waits, and returns how many frames and bytes that is, and how the connection ends.
func (o *outbox) drain() (frames int, data []byte, ending *closing) {
	for {
		t := o.take(0)
		if t.room != nil {
			data = append(data, t.data...)
			freeBatch(o.memory, t.room)
		}
		if frames += t.frames; t.frames == 0 && t.run == nil {
			return frames, data, t.ending
		}
	}
}

// F30: what waits for one socket is bounded: past that the connection ends with 4008.
func TestTheOutboxIsBounded(t *testing.T) {
	for puts, ends := range map[int]bool{10: false, 11: true} {
		m := unlimited()
		o := newOutbox(3000, m)
		for range puts {
			o.put(nil, packetOf(300, 1))
		}
		frames, _, ending := o.drain()
		if ends && (frames > 0 || ending == nil || ending.code != codeSlow) {
			t.Errorf("%d packets: %d wait and it ends with %v, want none and 4008", puts, frames, ending)
		}
		if !ends && (frames != puts || ending != nil) {
			t.Errorf("%d packets: %d were taken and it ends with %v, want all and nothing", puts, frames, ending)
		}
		ledgertest.Equal(t, []int{o.bytes, int(m.Used())}, []int{0, 0}, "%d packets: bytes that remain, and of all", puts)
	}
}

func TestTheFirstEndingCounts(t *testing.T) {
	o := newOutbox(1000, unlimited())
	o.put(nil, packetOf(200, 1))
	for _, c := range []closing{endShutdown, endSlow, endGone} {
		o.close(c)
	}
	o.put(nil, packetOf(200, 2))
	if frames, _, ending := o.drain(); frames != 1 || ending == nil || *ending != endShutdown {
		t.Errorf("%d frames and %v, want what waited and the shutdown", frames, ending)
	}
	o = newOutbox(1000, unlimited())
	o.put(nil, packetOf(200, 1))
	o.close(endGone)
	if frames, _, ending := o.drain(); frames != 0 || *ending != endGone {
		t.Errorf("%d frames and %v, want nothing for nobody", frames, ending)
	}
}

// All that waits counts once in the memory of all, with its overhead, until it was written or dropped.
func TestWhatWaitsIsCountedOverAllOutboxes(t *testing.T) {
	m := limited(10_000)
	a, b := newOutbox(1<<20, m), newOutbox(1<<20, m)
	want := func(what string, used int) {
		t.Helper()
		ledgertest.Equal(t, m.Used(), int64(used), "%s: bytes used", what)
	}
	shared := packetOf(1000, 1)
	a.put(nil, shared)
	want("a packet waits", 1000)
	b.put(nil, shared)
	want("it waits twice", 1000+entryBytes)
	b.put(nil, packetOf(2000, 2))
	a.discard()
	a.put(nil, packetOf(2000, 2)) // for nobody
	want("one connection is gone", 3000)
	taken := b.take(0)
	want("the rest is being written", batchBytes)
	freeBatch(m, taken.room)
	want("all was written", 0)
}

// When memory runs short, the connection that asks for more than what is left is closed with 1013,
// whatever it asked for. One that holds less goes on.
func TestMemoryIsSharedByAllOutboxes(t *testing.T) {
	for _, tt := range []struct {
		outbox    int
		conflates bool
		want      closing
	}{
		{1 << 20, false, endMemory}, {1 << 20, true, endMemory},
		{9_000, false, endSlow}, {9_000, true, endSlow}, // it has filled more than a quarter of its own
	} {
		m := limited(10_000)
		large, small := newOutbox(tt.outbox, m), newOutbox(tt.outbox, m)
		if tt.conflates {
			large.jump, small.jump = noDigest, noDigest
		}
		for seq := ledger.Seq(1); !large.isClosing(); seq++ {
			if small.put(nil, packetOf(200, seq)); small.isClosing() {
				t.Fatalf("the small one was closed when all held %d bytes", m.Used())
			}
			large.put(nil, packetOf(1000, seq))
			small.drain()
			if used := m.Used(); used > 10_000 {
				t.Fatalf("%d bytes are used, want at most %d", used, 10_000)
			}
		}
		if frames, _, ending := large.drain(); frames > 0 || *ending != tt.want {
			t.Errorf("%d frames wait and it ends with %v, want none and %v", frames, ending, tt.want.text)
		}
		ledgertest.Equal(t, m.Used(), 0, "bytes used by nobody")
	}
}

// Of each key the newest state is kept, behind the answers and one gap. A client that names more than
// the outbox has room for cannot be helped by conflation.
func TestConflationNeedsRoomForTheNewestStates(t *testing.T) { synctest.Test(t, conflationNeedsRoom) }

func conflationNeedsRoom(t *testing.T) {
	const size = 200
	o := newOutbox(50*size, unlimited())
	o.jump = noDigest
	put := func(k int, seq ledger.Seq) {
		p := packetOf(size, seq)
		p.kind, p.key = statePacket, key(k)
		o.put(nil, p)
	}
	o.put(nil, single([]byte("answer")))
	for seq := ledger.Seq(1); seq <= 1000; seq++ {
		put(int(seq%10), seq)
		synctest.Wait() // a reader that is as slow as may be
	}
	if o.isClosing() || o.bytes > o.limitBytes || len(o.entries) < 12 {
		t.Fatalf("closing = %t with %d packets of %d bytes", o.isClosing(), len(o.entries), o.bytes)
	}
	ledgertest.Equal(t, o.entries[0].kind, plainPacket, "the kind of the first, the answer")
	ledgertest.Equal(t, o.entries[1].gaps, 1, "gaps of the second")
	states := o.entries[2:] // without a hole, up to the last
	for i, e := range states {
		if want := ledger.Seq(1000 - len(states) + 1 + i); e.kind != statePacket || e.seq != want || e.key != key(int(want%10)) {
			t.Errorf("packet %d behind the gap is of kind %d with seq %d, want a state with %d", i, e.kind, e.seq, want)
		}
	}
	for k := range 60 {
		put(k, 2000)
	}
	if _, _, ending := o.drain(); ending == nil || ending.code != codeSlow {
		t.Errorf("60 keys in room for 50: ends with %v, want 4008", ending)
	}
}
