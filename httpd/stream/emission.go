package stream

import (
	"bytes"

	"ledgerd/engine/ledger"
)

// pieceBytes is the most that lies in an outbox as one piece.
const pieceBytes = 64 << 10

// piece is some whole frames, finished and shared by all who read them.
type piece struct {
	data   []byte
	frames int
	seq    ledger.Seq // the newest in it; 0 if it holds no updates

	unshared bool // made for one connection alone
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

// emission is one block, or the undoing of some, as one level hears of it. Its frames are
// encoded when the first subscriber wants them, under the hub's lock.
type emission struct {
	level    ledger.Commitment
	slot     ledger.Slot
	time     ledger.Opt[int64]
	firstSeq ledger.Seq // of updates[0], the others follow, unless seqs says otherwise
	seqs     []ledger.Seq
	lastSeq  ledger.Seq // the newest seq once all of it was told
	updates  []ledger.Update

	undoneFrom ledger.Opt[ledger.Slot] // a rollback: the tip before

	whole  [forms][]piece  // all frames
	single [forms][][]byte // frames of updates one by one
	begin  []byte          // the rollback frame
	end    []byte          // the slot_end frame
}

func (e *emission) seq(i int) ledger.Seq {
	if e.seqs != nil {
		return e.seqs[i]
	}
	return e.firstSeq + ledger.Seq(i)
}

// frame returns the frame of one update.
func (e *emission) frame(f form, i int) []byte {
	if e.single[f] == nil {
		e.single[f] = make([][]byte, len(e.updates))
	}
	if e.single[f][i] == nil {
		e.single[f][i] = e.appendUpdate(nil, f, i)
	}
	return e.single[f][i]
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

// opening returns what an extended subscriber hears before the updates: of a rollback that
// it was one, else nothing.
func (e *emission) opening() []byte {
	if e.begin == nil && e.undoneFrom.Known {
		// It carries the last seq before the restored accounts.
		e.begin = appendFrame(nil, func(b []byte) []byte {
			return appendRollback(b, e.undoneFrom.Value, e.slot, e.firstSeq-1)
		})
	}
	return e.begin
}

// ending returns what an extended subscriber hears after the updates of a block.
func (e *emission) ending() []byte {
	if e.end == nil && !e.undoneFrom.Known {
		e.end = appendFrame(nil, func(b []byte) []byte { return appendSlotEnd(b, e.slot, e.lastSeq) })
	}
	return e.end
}

// pieces returns all frames for those who want everything.
func (e *emission) pieces(f form) []piece {
	if e.whole[f] != nil {
		return e.whole[f]
	}
	var p packer
	if f == extended {
		p.add(e.opening(), 0)
	}
	for i := range e.updates {
		p.open.data = e.appendUpdate(p.room(), f, i)
		p.count(e.seq(i))
	}
	if f == extended {
		p.add(e.ending(), e.lastSeq)
	}
	e.whole[f] = p.finish()
	return e.whole[f]
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

// finish returns the pieces; not nil, even if there are none.
func (p *packer) finish() []piece {
	if p.open.frames > 0 {
		p.open.data = bytes.Clone(p.open.data) // a small block pins no large buffer
		p.done = append(p.done, p.open)
	}
	if p.done == nil {
		p.done = []piece{}
	}
	return p.done
}
