package stream

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"ledgerd/engine/ledger"
	"ledgerd/httpd/budget"
	"ledgerd/httpd/stream/frame"
)

// packet is some whole frames, finished, or something else for the writer to do. It may wait in
// many outboxes at once, and is not changed any more.
type packet struct {
	data []byte
	tally
	run   func() error // instead of data: called by the writer, which follows something else after it
	extra int          // bytes that run takes
	refs  atomic.Int32 // outboxes it waits in
	subject
}

// subject is what a packet is about: another packet may stand for an older one about the same.
type subject struct {
	kind packetKind
	key  ledger.Pubkey // of a state
}

type packetKind uint8

const (
	plainPacket  packetKind = iota // nothing may stand for it
	statePacket                    // of one account
	markerPacket                   // slot_end or rollback
)

const (
	// packetBytes is what a packet takes beside its data, whose size is rounded up too.
	packetBytes = 128
	// entryBytes is what an entry of an outbox takes, with the room that the list keeps to grow.
	entryBytes = 32
)

// slowShare is the part of its outbox that a connection may fill before it counts as a slow consumer
// where memory runs short: what is short is then of its making, and the close frame tells it where to resume.
const slowShare = 4

// single returns a packet of one frame that is no update.
func single(data []byte) *packet { return &packet{data: data, tally: tally{frames: 1}} }

// gapPacket returns a packet that says that states between two seqs are left out.
func gapPacket(from, to ledger.Seq) *packet {
	p := single(frame.AppendText(nil, func(b []byte) []byte { return appendGap(b, from, to) }))
	p.gaps, p.seq = 1, from
	return p
}

func (p *packet) size() int { return packetBytes + len(p.data) + p.extra }

// entry is a packet that waits for one socket.
type entry struct {
	*packet
	after *position // in the ring followed so far: what lies before it is written first; nil: nothing
}

// outbox holds what waits for one connection beside the ring it follows, in order, until the
// writer takes it.
type outbox struct {
	limitBytes int
	memory     *budget.Part
	wake       func() // lets the writer look again, never waits
	// jump has the writer write the newest states instead of what follows; errNoDigest if they cannot be told. nil: where room runs short the
	// connection ends. It never changes.
	jump      func() error
	end       atomic.Pointer[closing] // set once: nothing is accepted after
	endsSince time.Time               // set before end
	ctx       context.Context         // ends with it

	taking sync.Mutex // the writer or conflate looks at what waits; before mu

	mu      sync.Mutex
	cancel  context.CancelFunc // of ctx
	entries []entry
	bytes   int // what they take, shared packets too

	crowded bool // conflate is at work
	// mostBytes is what may wait while that is so where memory is short, and afterwards before it begins again: so each entry is looked at about
	// twice, however slow the reader is.
	mostBytes int
}

// newOutbox returns an outbox that wakes nobody yet.
func newOutbox(limitBytes int, m *budget.Part) *outbox {
	o := &outbox{limitBytes: limitBytes, memory: m, wake: func() {}}
	o.ctx, o.cancel = context.WithCancel(context.Background())
	return o
}

// countLocked notes that an entry came (1) or went (-1). In the memory of all a shared packet
// counts once, and each entry by itself.
func (o *outbox) countLocked(p *packet, sign int) {
	o.bytes += sign * (entryBytes + p.size())
	change := entryBytes
	if n := p.refs.Add(int32(sign)); n == 0 || n == 1 && sign > 0 {
		change += p.size()
	}
	o.memory.Hold(sign * change)
}

// put adds packets and wakes the writer, see add.
func (o *outbox) put(after *position, packets ...*packet) {
	o.add(after, 0, packets...)
	o.wake()
}

// add adds packets, and never waits. Where there is no room the reader is too slow: what waits is
// dropped, and the connection is closed. Nothing is ever left out in the middle, unless the
// client has asked for conflation, which then makes room beside. Room for as many entries as will follow is made at once, rather than in steps of which each leaves garbage.
func (o *outbox) add(after *position, room int, packets ...*packet) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.isClosing() {
		return
	}
	o.entries = slices.Grow(o.entries, room)
	for _, p := range packets {
		o.countLocked(p, 1)
		o.entries = append(o.entries, entry{p, after})
	}
	isSlow, short := o.bytes > o.limitBytes/slowShare, !o.memory.Allows(o.bytes)
	switch {
	case o.bytes > o.limitBytes:
		o.endLocked(endSlow)
	case (o.jump != nil) && (isSlow || short) && !o.crowded && o.bytes > o.mostBytes:
		o.crowded, o.mostBytes = true, o.bytes+o.bytes/8
		go o.conflate()
	case !short || (o.jump != nil) && o.crowded && o.bytes <= o.mostBytes:
	case isSlow:
		o.endLocked(endSlow)
	default:
		o.endLocked(endMemory)
	}
}

// conflating has room for those who conflate at once: each takes memory while it works, and more of them than processors would but take turns.
var conflating = make(chan struct{}, runtime.GOMAXPROCS(0))

// conflate makes room. Only the writer waits for it: what is added meanwhile comes after what it looks at.
func (o *outbox) conflate() {
	conflating <- struct{}{}
	defer func() { <-conflating }()
	o.taking.Lock()
	defer o.taking.Unlock()
	o.mu.Lock()
	entries, left := o.entries, o.bytes
	o.entries = nil
	o.mu.Unlock()
	kept, dropped, gap := conflate(entries)
	o.mu.Lock()
	defer o.mu.Unlock()
	left -= o.bytes
	if gap != nil {
		o.countLocked(gap, 1)
	}
	for _, p := range dropped {
		o.countLocked(p, -1)
	}
	left += o.bytes
	if o.entries = append(kept, o.entries...); o.ending().atOnce() {
		o.dropLocked()
	}
	if o.crowded, o.mostBytes = false, min(2*left, o.limitBytes*3/4); left > o.limitBytes/2 {
		o.endLocked(endSlow) // its newest states alone are too many
	}
}

// conflate drops every packet for which a newer one about the same waits, and puts one gap frame where the first of them was. It returns the
// entries that are kept, the packets that are not, and the gap, nil if nothing is dropped.
func conflate(entries []entry) (kept []entry, dropped []*packet, gap *packet) {
	newest := make(map[subject]*packet)
	var to ledger.Seq
	for _, e := range entries {
		newest[e.subject] = e.packet
		to = max(to, e.seq)
	}
	for _, e := range entries {
		if e.gaps == 0 && (e.kind == plainPacket || newest[e.subject] == e.packet) {
			kept = append(kept, e)
			continue
		}
		if gap == nil {
			from := e.seq
			if e.kind == statePacket {
				from-- // the last one before it
			}
			gap = gapPacket(from, to)
			kept = append(kept, entry{gap, e.after})
		}
		dropped = append(dropped, e.packet)
	}
	return kept, dropped, gap
}

// holdsOnlyAnswers reports whether nothing waits that says how to go on.
func (o *outbox) holdsOnlyAnswers() bool {
	o.taking.Lock()
	defer o.taking.Unlock()
	o.mu.Lock()
	defer o.mu.Unlock()
	return !slices.ContainsFunc(o.entries, func(e entry) bool { return e.run != nil || e.seq != 0 })
}

// close ends the connection after what waits was written. The first call counts.
func (o *outbox) close(c closing) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.endLocked(c)
}

// discard drops what waits, when the connection is gone.
func (o *outbox) discard() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.endLocked(endGone)
	o.dropLocked()
}

func (o *outbox) endLocked(c closing) {
	if o.isClosing() {
		return
	}
	o.endsSince = time.Now()
	o.end.Store(&c)
	o.cancel()
	if c.atOnce() {
		o.dropLocked()
	}
	o.wake()
}

func (o *outbox) dropLocked() {
	for _, e := range o.entries {
		o.countLocked(e.packet, -1)
	}
	o.entries = nil
}

// isClosing reports whether the connection is about to end.
func (o *outbox) isClosing() bool { return o.ending() != nil }

// ending returns how the connection is about to end, nil if it is not.
func (o *outbox) ending() *closing { return o.end.Load() }

// taken is what the writer is to do next.
type taken struct {
	batch               // frames to be written
	room   *[]byte      // that they are in, to be freed when they were written; nil if there are none
	run    func() error // instead of frames
	until  *position    // where the frames of the ring end that come before what still waits; nil: nothing waits
	ending *closing     // with nothing left: how the connection ends
}

// take returns what a writer may write that has written its ring up to at.
func (o *outbox) take(at uint64) (t taken) {
	o.taking.Lock()
	defer o.taking.Unlock()
	o.mu.Lock()
	defer o.mu.Unlock()
	for len(o.entries) > 0 && t.run == nil {
		e := o.entries[0]
		if e.after != nil && e.after.at > at {
			t.until = e.after
			return t
		}
		if t.frames > 0 && (e.run != nil || len(t.data)+len(e.data) > cap(t.data)) {
			return t
		}
		if t.run = e.run; t.run == nil {
			if t.room == nil {
				t.room = newBatch(o.memory)
				t.data = *t.room
			}
			t.batch.add(e.packet)
		}
		o.countLocked(e.packet, -1)
		o.entries[0] = entry{}
		o.entries = o.entries[1:]
	}
	if len(o.entries) == 0 {
		o.entries, o.mostBytes, t.ending = nil, 0, o.ending()
	}
	return t
}
