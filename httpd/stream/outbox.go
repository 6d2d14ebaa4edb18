package stream

import (
	"context"
	"fmt"
	"math"
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
	update bool         // it is a part of an emission, which a digest may replace
	state  bool         // it is a part of a snapshot, which a digest must not overtake, since the digest is newer
	run    func() error // instead of data: called by the writer, which follows something else after it
	extra  int          // bytes that run takes
	refs   atomic.Int32 // outboxes it waits in
}

const (
	// packetBytes is what a packet takes beside its data, whose size is rounded up too.
	packetBytes = 128
	// entryBytes is what an entry of an outbox takes, with the room that the list keeps to grow.
	entryBytes = 32
)

// slowShare is the part of its outbox that a connection may fill before it counts as a slow consumer
// where memory runs short: then it is a cause of the shortage, and the close frame says where to resume.
const slowShare = 4

// single returns a packet of one frame that is no update.
func single(data []byte) *packet { return &packet{data: data, tally: tally{frames: 1}} }

// message returns a packet of one text frame. The text is of our making, and needs no escapes.
func message(format string, args ...any) *packet {
	return single(frame.AppendText(nil, func(b []byte) []byte { return fmt.Appendf(b, format, args...) }))
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
	limitBytes int // of bytes and of snapshots, for each by itself
	memory     *budget.Part
	wake       func() // lets the writer look again, never waits
	// jump makes the writer send a digest instead of the updates that follow; jumped is false if there can be none. If jump is nil, the
	// connection ends when room runs short. It never changes.
	jump      func() (jumped bool, err error)
	end       atomic.Pointer[closing] // set once: nothing is accepted after
	endsSince time.Time               // set before end
	ctx       context.Context         // ends with it

	mu      sync.Mutex
	cancel  context.CancelFunc // of ctx
	entries []entry
	bytes   int // what they take, shared packets too, beside snapshots
	// snapshots is what those of snapshots take, which are bounded as they are made: how fast its client reads says nothing of one that has just come.
	snapshots int
	ofClient  *atomic.Int64 // what those of snapshots take in all outboxes of the client
	firsts    int           // those that run, and those of snapshots
	lost      ledger.Seq    // the lowest seq of an update, or after a seq to resume from, that was dropped because the connection ends
	// leftOut is the seq after which updates are left out until the writer jumps. It jumps after all of firsts.
	leftOut ledger.Opt[ledger.Seq]
}

// newOutbox returns an outbox that wakes nobody yet. ofClient counts the bytes of all snapshots that wait for a client.
func newOutbox(limitBytes int, m *budget.Part, ofClient *atomic.Int64) *outbox {
	o := &outbox{limitBytes: limitBytes, memory: m, ofClient: ofClient, wake: func() {}, lost: math.MaxUint64}
	o.ctx, o.cancel = context.WithCancel(context.Background())
	return o
}

// countLocked notes that an entry came (1) or went (-1). In the memory of all a shared packet
// counts once, and each entry by itself.
func (o *outbox) countLocked(p *packet, sign int) {
	kind := &o.bytes
	if p.state {
		kind = &o.snapshots
		o.ofClient.Add(int64(sign * (entryBytes + p.size())))
	}
	*kind += sign * (entryBytes + p.size())
	if p.run != nil || p.state {
		o.firsts += sign
	}
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
// client has asked for conflation. Room for as many entries as will follow is made at once, rather than in steps of which each leaves garbage.
func (o *outbox) add(after *position, room int, packets ...*packet) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.isClosing() {
		for _, p := range packets {
			o.loseLocked(p)
		}
		return
	}
	o.entries = slices.Grow(o.entries, room)
	for _, p := range packets {
		switch {
		case o.leftOut.Known && p.update:
			continue
		case o.leftOut.Known && p.state: // neither may come first: some left-out updates are older than the snapshot, and some newer
			o.endLocked(endSlow)
			return
		}
		o.countLocked(p, 1)
		o.entries = append(o.entries, entry{p, after})
	}
	isSlow, short := o.bytes > o.limitBytes/slowShare, !o.memory.Allows(o.bytes+o.snapshots)
	switch {
	case o.jump != nil && (isSlow || short) && o.leaveOutLocked():
	case o.bytes > o.limitBytes, isSlow && short:
		o.endLocked(endSlow)
	case short:
		o.endLocked(endMemory)
	}
}

// hasRoomFor reports whether a snapshot of so many bytes may wait beside those that do.
func (o *outbox) hasRoomFor(snapshot int) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.snapshots+snapshot <= o.limitBytes
}

// leaveOutLocked drops the updates that wait after all snapshots, if there are any. The digest of the next jump replaces them, and
// those that come until then. Updates that wait before a snapshot are sent in their place, so that numbers never run backwards.
func (o *outbox) leaveOutLocked() bool {
	front := 0
	for i, e := range o.entries {
		if e.state {
			front = i + 1
		}
	}
	first := slices.IndexFunc(o.entries[front:], func(e entry) bool { return e.update })
	if first < 0 {
		return false
	}
	o.leftOut = ledger.Some(max(o.entries[front+first].seq, 1) - 1) // the last one before it
	left := slices.Clone(o.entries[:front+first])
	for _, e := range o.entries[front+first:] {
		if e.update {
			o.countLocked(e.packet, -1)
		} else {
			left = append(left, e)
		}
	}
	o.entries = left
	return true
}

// startJump returns after which seq updates are left out, if they are, and ends that. It returns false if something waits that comes first.
func (o *outbox) startJump() (leftOut ledger.Opt[ledger.Seq], ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.firsts > 0 {
		return leftOut, false
	}
	leftOut, o.leftOut = o.leftOut, leftOut
	return leftOut, true
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
		o.loseLocked(e.packet)
	}
	o.entries, o.leftOut = nil, ledger.Opt[ledger.Seq]{}
}

// loseLocked notes from where the client must resume because a packet is dropped.
func (o *outbox) loseLocked(p *packet) {
	if p.seq > 0 && (p.update || p.run != nil) {
		o.lost = min(o.lost, p.seq)
	}
}

// firstLost returns the lowest number of what was dropped because the connection ends; one more than any update has if nothing was.
func (o *outbox) firstLost() ledger.Seq {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.lost
}

// isClosing reports whether the connection is about to end.
func (o *outbox) isClosing() bool { return o.ending() != nil }

// ending returns how the connection is about to end, nil if it is not.
func (o *outbox) ending() *closing { return o.end.Load() }

// taken is what the writer is to do next.
type taken struct {
	batch               // frames to be written
	room   *[]byte      // that they are in, to be freed when they were written; nil if there are none
	large  *packet      // that they are instead, to be counted until they were written
	run    func() error // instead of frames
	until  *position    // where the frames of the ring end that come before what still waits; nil: nothing waits
	ending *closing     // with nothing left: how the connection ends
}

// take returns what a writer may write that has written its ring up to at.
func (o *outbox) take(at uint64) (t taken) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for len(o.entries) > 0 && t.run == nil && !(o.leftOut.Known && o.firsts == 0) {
		e := o.entries[0]
		if e.after != nil && e.after.at > at {
			t.until = e.after
			return t
		}
		if t.frames > 0 && (e.run != nil || len(t.data)+len(e.data) > cap(t.data)) {
			return t
		}
		if len(e.data) > batchBytes { // many may write it at once, without a copy for each
			t.batch, t.large = batch{e.data, e.tally}, e.packet
			o.dropFirstLocked()
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
		o.dropFirstLocked()
	}
	switch {
	case t.run != nil || t.frames > 0:
	case o.leftOut.Known && o.firsts == 0:
		t.run = o.mustJump
	case len(o.entries) == 0:
		o.entries, t.ending = nil, o.ending()
	}
	return t
}

func (o *outbox) dropFirstLocked() {
	o.entries[0] = entry{}
	o.entries = o.entries[1:]
}

// written ends the counting of a large packet.
func (o *outbox) written(p *packet) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.countLocked(p, -1)
}

// mustJump jumps, or ends the connection.
func (o *outbox) mustJump() error {
	jumped, err := o.jump()
	if !jumped {
		return &endSlow
	}
	return err
}
