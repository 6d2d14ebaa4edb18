package ledger

import "errors"

// A stream is a source that shows blocks as its node reports them: a block may come before its parent, or without it. The
// sequencer keeps such a block until its parent comes, and the stream asks the sequencer with a [Question] what is missing.

// Question is an event by which a stream learns what the sequencer made of the events before it. The source waits for the
// answer and changes nothing of Shown meanwhile. On a fresh start the sequencer chooses the first block when it is asked:
// one that is confirmed, on which another builds, and whose parent was not shown at another slot than it says. Blocks wait
// until then.
type Question struct {
	Shown   Shown
	Restart bool           // the stream begins again, so blocks that wait for their parents are forgotten
	Answer  chan<- Verdict // has room for one
}

// Shown says what a stream shows besides the blocks that it emitted.
type Shown interface {
	// Expects reports whether a part of the block at a slot came: its rest may come.
	Expects(Slot) bool
	// ShowsElsewhere reports whether the stream showed a block of this hash, or a part of it, at another slot.
	ShowsElsewhere(Hash, Slot) bool
}

// Verdict is the answer to a Question.
type Verdict struct {
	Rooted               bool    // there is a first block; else the identifiers are zero and there is no gap
	Root, Confirmed, Tip BlockID // the newest finalized block, the newest confirmed one, and the newest one of the chain

	Placed         uint64 // how many blocks joined the tree since the sequencer began
	Repeated       uint64 // how many blocks came again
	Contradictions uint64 // how often the stream showed two blocks at a slot, or called one dead that is not

	Gap Opt[Gap]

	// Wrong is the reason why an event of the stream was dropped: the event contradicts the stream or what is final, or too much
	// waits already (ErrTooMuchWaits). Another connection may show other events.
	Wrong error
}

// Gap is a part of the chain that a stream did not show.
type Gap struct {
	After     BlockID // the newest confirmed block, or the root where that is on another branch
	UpTo      Slot    // of the parent that the first block after the gap names
	Confirmed bool    // that block is confirmed
}

// ErrTooMuchWaits says that blocks of too many bytes wait for a parent that is missing.
var ErrTooMuchWaits = errors.New("too much waits for a block that is missing")
