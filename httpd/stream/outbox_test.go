package stream

import (
	"fmt"
	"testing"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/ledgertest"
	"ledgerd/httpd/budget"
)

func unlimited() *budget.Part { return limited(1 << 60) }

// cannotJump is how an outbox jumps that has nothing to tell.
func cannotJump() (bool, error) { return false, nil }

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
			large.jump, small.jump = cannotJump, cannotJump
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

// Where room runs short a conflating client does without the updates that wait, and those that follow: the writer jumps over them, after all that
// says how to go on or is of a snapshot, and before the answers behind that.
func TestConflationLeavesOutUpdatesAlone(t *testing.T) {
	const size = 200
	var did []string
	o := newOutbox(50*size*slowShare, unlimited())
	o.jump = func() (bool, error) {
		leftOut, ok := o.startJump()
		did = append(did, fmt.Sprintf("jump from %d %t", leftOut.Value, ok))
		return len(did) < 5, nil
	}
	takeAll := func() {
		for t := o.take(0); t.frames > 0 || t.run != nil; t = o.take(0) {
			if t.run == nil {
				did = append(did, string(t.data))
				freeBatch(o.memory, t.room)
			} else if err := t.run(); err != nil {
				did = append(did, err.Error())
			}
		}
	}
	update := func(seq ledger.Seq) {
		p := packetOf(size, seq)
		p.update = true
		o.put(nil, p)
	}
	o.put(nil, single([]byte("before")), &packet{data: []byte("one"), update: true, tally: tally{frames: 1, seq: 1}}, &packet{data: []byte("state"), state: true, tally: tally{frames: 1}})
	for seq := ledger.Seq(2); seq <= 1000; seq++ {
		if update(seq); seq == 500 {
			o.put(nil, single([]byte("after")), &packet{run: func() error { did = append(did, "run"); return nil }}, single([]byte("last")))
		}
	}
	takeAll()
	ledgertest.Equal(t, did, []string{"beforeonestateafter", "run", "jump from 1 true", "last"}, "what was taken")
	for seq := ledger.Seq(1001); seq <= 1100; seq++ {
		update(seq)
	}
	takeAll()
	ledgertest.Equal(t, did[4:], []string{"jump from 1000 true", "slow consumer"}, "where it cannot be told")
	for seq := ledger.Seq(1101); seq <= 1200; seq++ {
		update(seq)
	}
	o.put(nil, &packet{data: []byte("state"), state: true, tally: tally{frames: 1}})
	ledgertest.Equal(t, o.ending(), &endSlow, "how it ends where a snapshot comes while updates are left out")
	o.discard()
	ledgertest.Equal(t, o.memory.Used(), 0, "bytes used by nobody")
}
