package stream

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"ledgerd/engine/ledger"
	"ledgerd/httpd/stream/frame"
)

// packet is some whole frames, finished, or a change of what the writer follows. It may wait in
// many outboxes at once, and is not changed any more.
type packet struct {
	data      []byte
	key       ledger.Pubkey // of a state
	seq       ledger.Seq    // the newest in it; 0 if it holds no updates
	published time.Duration // when, see Hub.now; 0: not known
	special   *special      // instead of data
	frames    int32
	refs      atomic.Int32 // outboxes it waits in
	kind      packetKind
}

// packetKind says which packets another one may stand for.
type packetKind uint8

const (
	plainPacket  packetKind = iota
	statePacket             // of one account: a later state of it may stand for this one
	markerPacket            // slot_end or rollback: a later marker may stand for this one
	gapPacket               // says that states after its seq were dropped
)

// special is an instruction to the writer.
type special struct {
	switchRing *cursor  // what the writer follows from here on
	missed     *backlog // frames that the writer makes
}

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
func single(data []byte) *packet { return &packet{data: data, frames: 1} }

func (p *packet) size() int {
	size := packetBytes + len(p.data)
	if p.special != nil && p.special.missed != nil {
		size += p.special.missed.size()
	}
	return size
}

// entry is a packet that waits for one socket.
type entry struct {
	*packet
	after *position // in the ring followed so far: what lies before it is written first; nil: nothing
}

// outbox holds what waits for one connection beside the ring it follows, in order, until the
// writer takes it.
type outbox struct {
	limitBytes int
	conflates  bool // when it is full, rather than that the connection ends; never changes
	memory     *memory
	wake       func() // starts the writer, never waits; nil: there is none

	mu      sync.Mutex
	entries []entry
	bytes   int                // what they take, shared packets too
	ending  *closing           // set once: nothing is accepted after
	ctx     context.Context    // ends with ending; nil until somebody asks for it
	cancel  context.CancelFunc // of ctx
}

func newOutbox(limitBytes int, m *memory) *outbox { return &outbox{limitBytes: limitBytes, memory: m} }

// countLocked notes that an entry came (1) or went (-1). In the memory of all a shared packet
// counts once, and each entry by itself.
func (o *outbox) countLocked(p *packet, sign int) {
	o.bytes += sign * (entryBytes + p.size())
	change := entryBytes
	if n := p.refs.Add(int32(sign)); n == 0 || n == 1 && sign > 0 {
		change += p.size()
	}
	o.memory.used.Add(int64(sign * change))
}

// put adds packets and wakes the writer, see add.
func (o *outbox) put(after *position, packets ...*packet) {
	o.add(after, packets...)
	o.wakeUp()
}

// add adds packets, and never waits. Where there is no room the reader is too slow: what waits is
// dropped, and the connection is closed. Nothing is ever left out in the middle, unless the
// client has asked for conflation.
func (o *outbox) add(after *position, packets ...*packet) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.ending != nil {
		return
	}
	for _, p := range packets {
		o.countLocked(p, 1)
		o.entries = append(o.entries, entry{p, after})
	}
	switch {
	case o.bytes > o.limitBytes && !o.conflateLocked():
		o.endLocked(endSlow)
	case !o.memory.allows(o.bytes) && o.bytes > o.limitBytes/slowShare:
		o.endLocked(endSlow)
	case !o.memory.allows(o.bytes):
		o.endLocked(endMemory)
	}
}

// conflateLocked drops every state for which a newer one of the same account waits, and puts one
// gap frame where the first of them was. It succeeds if that makes half of the outbox free: so
// each entry is looked at about twice, however slow the reader is.
func (o *outbox) conflateLocked() bool {
	if !o.conflates {
		return false
	}
	newer := make(map[ledger.Pubkey]struct{})
	marked := false
	var first entry // of those dropped
	var at int      // its index in kept
	var newest ledger.Seq
	kept := make([]entry, 0, len(o.entries)+1) // newest first
	for _, e := range slices.Backward(o.entries) {
		newest = max(newest, e.seq)
		stale := e.kind == gapPacket || e.kind == markerPacket && marked
		if e.kind == statePacket {
			_, stale = newer[e.key]
		}
		if stale {
			first, at = e, len(kept)
			o.countLocked(e.packet, -1)
			continue
		}
		switch e.kind {
		case markerPacket:
			marked = true
		case statePacket:
			newer[e.key] = struct{}{}
		}
		kept = append(kept, e)
	}
	if first.packet != nil {
		from := first.seq
		if first.kind == statePacket {
			from-- // the last one before it
		}
		p := &packet{frames: 1, kind: gapPacket, seq: from}
		p.data = frame.AppendText(nil, func(b []byte) []byte { return appendGap(b, from, newest) })
		o.countLocked(p, 1)
		kept = slices.Insert(kept, at, entry{p, first.after})
	}
	slices.Reverse(kept)
	o.entries = kept
	return o.bytes <= o.limitBytes/2
}

// holdsOnlyAnswers reports whether nothing waits that says how to go on.
func (o *outbox) holdsOnlyAnswers() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return !slices.ContainsFunc(o.entries, func(e entry) bool { return e.special != nil || e.seq != 0 })
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
	if o.ending != nil {
		return
	}
	o.ending = &c
	if o.cancel != nil {
		o.cancel()
	}
	if c.atOnce() {
		o.dropLocked()
	}
	o.wakeUp()
}

func (o *outbox) dropLocked() {
	for _, e := range o.entries {
		o.countLocked(e.packet, -1)
	}
	o.entries = nil
}

// wakeUp lets the writer look again. It never waits.
func (o *outbox) wakeUp() {
	if o.wake != nil {
		o.wake()
	}
}

// context returns a context that ends when the connection is about to end.
func (o *outbox) context() context.Context {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.ctx == nil {
		o.ctx, o.cancel = context.WithCancel(context.Background())
		if o.ending != nil {
			o.cancel()
		}
	}
	return o.ctx
}

// endingSoon returns how the connection is about to end, nil if it is not.
func (o *outbox) endingSoon() *closing {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.ending
}

// isClosing reports whether the connection is about to end.
func (o *outbox) isClosing() bool { return o.endingSoon() != nil }

// endsAtOnce reports whether what waits is not written any more.
func (o *outbox) endsAtOnce() bool {
	ending := o.endingSoon()
	return ending != nil && ending.atOnce()
}

// taken is what the writer is to do next.
type taken struct {
	batch            // frames to be written
	special *special // alone, if there is one
	until   position // where the frames of the ring end that come before what still waits
	waits   bool     // something does
	ending  *closing // with nothing left: how the connection ends
	gaps    int      // among the frames
	room    *[]byte  // that the frames are in, to be freed when they were written; nil if there are none
}

// take returns what a writer may write that has written its ring up to at.
func (o *outbox) take(at uint64) (t taken) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for len(o.entries) > 0 {
		e := o.entries[0]
		if e.after != nil && e.after.at > at {
			t.until = *e.after
			break
		}
		if t.frames > 0 && (e.special != nil || len(t.data)+len(e.data) > cap(t.data)) {
			break
		}
		if t.room == nil && e.special == nil {
			t.room = o.memory.batch()
			t.data = *t.room
		}
		t.data = append(t.data, e.data...)
		t.count(int(e.frames), e.seq, e.published)
		if e.kind == gapPacket {
			t.gaps++
		}
		o.countLocked(e.packet, -1)
		o.entries[0] = entry{}
		o.entries = o.entries[1:]
		if t.special = e.special; t.special != nil {
			break
		}
	}
	if t.waits = len(o.entries) > 0; !t.waits {
		o.entries, t.ending = nil, o.ending
	}
	return t
}
