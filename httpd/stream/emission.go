package stream

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"sync/atomic"
	"time"

	"ledgerd/engine/ledger"
	"ledgerd/httpd/stream/frame"
)

// form is how updates are written.
type form uint8

const (
	basic      form = 0            // exactly the fields of the original interface
	extended   form = 1            // with slot, seq, owner, executable and commitment
	withTokens form = extended | 2 // with the facts of token accounts
	withData   form = extended | 4 // with the data of accounts
	forms           = (withTokens | withData) + 1
)

// shows reports whether a form has all that another has.
func (f form) shows(what form) bool { return f&what == what }

// marksSlots reports whether slot_end, rollback and heartbeat frames belong to a form.
func (f form) marksSlots() bool { return f.shows(extended) }

// maxFrameBytes is more than any update, slot_end or rollback frame takes without data.
const maxFrameBytes = 512

// updateFrameBytes is more than the frame of an account's state takes.
func (f form) updateFrameBytes(a *ledger.Account) int {
	if !f.shows(withData) {
		return maxFrameBytes
	}
	return maxFrameBytes + base64.StdEncoding.EncodedLen(a.Data.Len())
}

// emission is one block, or the undoing of some, at one commitment level. It has parts: an
// opening, the updates, and an ending. Of a block the ending is a slot_end frame, of an undoing
// the opening is a rollback frame; the other one is empty, and both are in the basic form.
type emission struct {
	level     ledger.Commitment
	version   ledger.Version // of its record: increasing within a level
	slot      ledger.Slot
	time      ledger.Opt[int64]
	firstSeq  ledger.Seq // of updates[0], the others follow, unless seqs says otherwise
	seqs      []ledger.Seq
	lastSeq   ledger.Seq // the newest seq once all of it was delivered
	updates   []ledger.Update
	dataBytes int           // of the data of updates, now and before
	block     *ledger.Block // while it is delivered by a feed that keeps blocks; nil: an undoing
	published time.Duration // when, see Hub.now

	// decimals are the updates' mints, nil until they are read for the first subscriber that wants them. All
	// emissions of the same updates share them.
	decimals *atomic.Pointer[mints]
	// keptBy is how many levels keep an emission of the same updates for resumes. All of these share it; the hub's lock guards it.
	keptBy *int

	undoneFrom ledger.Opt[ledger.Slot] // an undoing: the tip before

	last    [forms]partPacket // the one delivered last, while it is delivered
	scratch []byte            // buffer to encode in, of the same
}

// partPacket is the packet of a part.
type partPacket struct {
	part int
	*packet
}

// opening is the part before the updates, which are the parts from 0 on.
const opening = -1

// ending returns the part after the updates.
func (e *emission) ending() int { return len(e.updates) }

// seq returns the newest seq a client knows that has received a part. The opening carries the last
// one before the restored accounts.
func (e *emission) seq(part int) ledger.Seq {
	switch {
	case part == e.ending():
		return e.lastSeq
	case part != opening && e.seqs != nil:
		return e.seqs[part]
	}
	return e.firstSeq + ledger.Seq(part)
}

// tally returns that of a part's frame.
func (e *emission) tally(part int) tally {
	return tally{frames: 1, seq: e.seq(part), published: e.published}
}

// after reports whether a part is sent to a client that has seen a seq. An update of a block has a
// number of its own: it was seen if that is not after the seq. All else carries the last number
// before it, and nothing says whether it was seen: where it carries the very seq it is sent again,
// which changes nothing for a client that knows it, and is never missed.
func (e *emission) after(part int, seen ledger.Seq) bool {
	numbered := !e.isMarker(part) && e.seqs == nil // restored accounts may share a number
	return e.seq(part) > seen || e.seq(part) == seen && !numbered
}

// isMarker reports whether a part is no update.
func (e *emission) isMarker(part int) bool { return part == opening || part == e.ending() }

// frameBytes is more than the frame of a part takes.
func (e *emission) frameBytes(f form, part int) int {
	if e.isMarker(part) {
		return maxFrameBytes
	}
	return f.updateFrameBytes(&e.updates[part].Account)
}

// hasFrame reports whether there is a frame of a part in a form.
func (e *emission) hasFrame(f form, part int) bool {
	return !e.isMarker(part) || f.marksSlots() && e.undoneFrom.Known == (part == opening)
}

// appendPart appends the frame of a part in a form, if it has one.
func (e *emission) appendPart(dst []byte, f form, part int) []byte {
	switch {
	case !e.isMarker(part):
		var d ledger.Opt[uint8]
		a := &e.updates[part].Account
		if f.shows(withTokens) {
			d = e.decimals.Load().of(a)
		}
		return appendUpdate(dst, f, a, d, e.time, e.slot, e.seq(part), e.level)
	case !e.hasFrame(f, part):
		return dst
	}
	return frame.AppendText(dst, func(b []byte) []byte {
		if part == opening {
			return fmt.Appendf(b, `{"type":"rollback","from_slot":%d,"to_slot":%d,"seq":%d}`, e.undoneFrom.Value, e.slot, e.seq(opening))
		}
		return fmt.Appendf(b, `{"type":"slot_end","slot":%d,"seq":%d}`, e.slot, e.lastSeq)
	})
}

// packet returns the packet of a part that has a frame: the same one until another part's is asked for, because
// as many subscribers as named an update receive it, one after another. It may wait for long, and so it
// holds nothing of the emission.
func (e *emission) packet(f form, part int) *packet {
	l := &e.last[f]
	if l.packet == nil || l.part != part {
		e.scratch = e.appendPart(e.scratch[:0], f, part)
		l.part, l.packet = part, &packet{data: bytes.Clone(e.scratch), tally: e.tally(part), update: true}
	}
	return l.packet
}

// delivered forgets what was needed only to deliver the emission.
func (e *emission) delivered() { e.last, e.scratch = [forms]partPacket{}, nil }
