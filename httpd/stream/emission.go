package stream

import (
	"bytes"

	"ledgerd/engine/ledger"
)

// pieceBytes is the most that lies in an outbox as one piece.
const pieceBytes = 64 << 10

// piece is what the writer handles at once: some whole frames, finished, or a change of
// what it follows.
type piece struct {
	data   []byte
	frames int
	seq    ledger.Seq // the newest in it; 0 if it holds no updates

	state    *ledger.Pubkey // whose newest state it is: a later one may stand for it
	marker   bool           // slot_end or rollback: a later one may stand for it
	gap      bool           // that states were dropped after seq
	behind   place          // the place in the ring followed so far that must have been written before
	unshared bool           // made for one connection alone

	// Instead of frames:
	turn   *cursor  // what the writer follows from here on
	missed *backlog // frames that the writer makes
}

// one returns a piece of a single frame.
func one(frame []byte, seq ledger.Seq) piece { return piece{data: frame, frames: 1, seq: seq} }

// form is how updates are written.
type form uint8

const (
	literal  form = iota // exactly the fields of the original interface
	extended             // with slot, seq, owner, executable and commitment
	forms
)

// emission is one block, or the undoing of some, as one level hears of it. The frame of an
// update is encoded when the first who named it wants it, under the hub's lock.
type emission struct {
	level    ledger.Commitment
	version  ledger.Version // of its record: increasing within a level
	slot     ledger.Slot
	time     ledger.Opt[int64]
	firstSeq ledger.Seq // of updates[0], the others follow, unless seqs says otherwise
	seqs     []ledger.Seq
	lastSeq  ledger.Seq // the newest seq once all of it was told
	updates  []ledger.Update

	undoneFrom ledger.Opt[ledger.Slot] // a rollback: the tip before

	last    [forms]*lastFrame // while it is being heard
	scratch []byte            // room to encode in, of the same
}

func (e *emission) seq(i int) ledger.Seq {
	if e.seqs != nil {
		return e.seqs[i]
	}
	return e.firstSeq + ledger.Seq(i)
}

// lastFrame is the frame of the update that was heard last, of which there are as many as
// subscribers who named it, one after another. It waits in outboxes, perhaps for long, and so
// holds nothing of the emission.
type lastFrame struct {
	update int
	key    ledger.Pubkey
	data   []byte
}

// frame returns the frame of one update, as long as it has no other one.
func (e *emission) frame(f form, i int) *lastFrame {
	if l := e.last[f]; l == nil || l.update != i {
		e.scratch = e.appendUpdate(e.scratch[:0], f, i)
		e.last[f] = &lastFrame{i, e.updates[i].Account.Pubkey, bytes.Clone(e.scratch)}
	}
	return e.last[f]
}

func (e *emission) appendUpdate(dst []byte, f form, i int) []byte {
	if f == literal {
		return appendFrame(dst, func(b []byte) []byte {
			return appendLiteral(b, &e.updates[i].Account, e.time)
		})
	}
	return appendFrame(dst, func(b []byte) []byte {
		return appendExtended(b, &e.updates[i].Account, e.time, e.slot, e.seq(i), e.level)
	})
}

// appendOpening appends what an extended subscriber hears before the updates: of a rollback
// that it was one, else nothing.
func (e *emission) appendOpening(dst []byte) []byte {
	if !e.undoneFrom.Known {
		return dst
	}
	// It carries the last seq before the restored accounts.
	return appendFrame(dst, func(b []byte) []byte {
		return appendRollback(b, e.undoneFrom.Value, e.slot, e.firstSeq-1)
	})
}

// appendEnding appends what an extended subscriber hears after the updates of a block.
func (e *emission) appendEnding(dst []byte) []byte {
	if e.undoneFrom.Known {
		return dst
	}
	return appendFrame(dst, func(b []byte) []byte { return appendSlotEnd(b, e.slot, e.lastSeq) })
}

// packer gathers frames into pieces.
type packer struct {
	open piece
	done []piece
}

// maxFrameBytes is more than any frame of ours takes, so that a piece cut when it might
// not hold another one stays within pieceBytes.
const maxFrameBytes = 512

func (p *packer) room() []byte {
	if p.open.data == nil {
		p.open.data = make([]byte, 0, pieceBytes)
	}
	return p.open.data
}

func (p *packer) add(frame []byte, seq ledger.Seq) {
	if len(frame) > 0 {
		p.open.data = append(p.room(), frame...)
		p.count(seq)
	}
}

// count notes that a frame was appended, and cuts where no more may fit.
func (p *packer) count(seq ledger.Seq) {
	p.open.frames++
	p.open.seq = max(p.open.seq, seq)
	if len(p.open.data) > pieceBytes-maxFrameBytes {
		p.done, p.open = append(p.done, p.open), piece{}
	}
}

// finish returns the pieces.
func (p *packer) finish() []piece {
	if p.open.frames > 0 {
		p.open.data = bytes.Clone(p.open.data) // a small block pins no large buffer
		p.done = append(p.done, p.open)
	}
	return p.done
}
