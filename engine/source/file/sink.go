package file

import (
	"context"
	"fmt"
	"io"
	"log/slog"

	"ledgerd/engine/ledger"
)

// sink hands events to the sequencer, without those that a resumed run must not repeat.
type sink struct {
	emit ledger.Emit
	from *ledger.ResumePoint // nil: everything passes
	log  *slog.Logger        // may be nil without from

	spoke         bool // a status was emitted
	below         bool // a block below the resume point was seen: the input must show that one, too
	passed        bool // a block at or past the resume point was seen
	found         bool // that block was seen
	strayed       bool // one was seen that is on no branch with it
	sawBlock      bool
	basesHeldBack int
	seen          []seenBlock // past the resume point: those of a slot stand at slot % seenSlots
	failed        error       // what emit returned; nothing is emitted after it

	// What the log has told of blocks that a node answered. It is told once of all inputs: there may be one for each block.
	guessed bool // a slot had to be guessed
	unread  bool // transactions of an unknown version were left out
	untold  bool // what transactions wrote was left out
}

// maxBaseAccounts bounds one base-state event. It becomes one record, and a record is
// applied and made durable as one: a few MiB keep both short.
const maxBaseAccounts = 4096

// seenSlots is how many slots back a block is remembered: 128 times as far as finality takes.
// A status that comes even later passes as it was read.
const seenSlots = 4096

// seenBlock is the first block of a slot, whether it is on no branch with the resume point, and how many there were.
type seenBlock struct {
	slot   ledger.Slot
	hash   ledger.Hash
	strays bool
	blocks int
}

// put emits e, or leaves it out on a resumed run as the package comment says. Base state of any size becomes events of
// bounded size.
func (k *sink) put(ctx context.Context, e ledger.Event) error {
	state, _ := e.(*ledger.BaseState)
	for state != nil && len(state.Accounts)+len(state.Mints) > maxBaseAccounts {
		n := min(len(state.Accounts), maxBaseAccounts)
		m := maxBaseAccounts - n
		part := &ledger.BaseState{Slot: state.Slot, Level: state.Level, Accounts: state.Accounts[:n:n], Mints: state.Mints[:m:m]}
		state = &ledger.BaseState{Slot: state.Slot, Level: state.Level, Accounts: state.Accounts[n:], Mints: state.Mints[m:]}
		e = state
		if err := k.putOne(ctx, part); err != nil {
			return err
		}
	}
	return k.putOne(ctx, e)
}

// putEach puts what next returns, nil for nothing to put, until that is io.EOF. An error names the piece, counted from first.
func (k *sink) putEach(ctx context.Context, piece string, first int, next func() (ledger.Event, error)) error {
	for n := first; ; n++ {
		e, err := next()
		if err == nil && e != nil {
			err = k.put(ctx, e)
		}
		switch {
		case err == io.EOF:
			return nil
		case err != nil:
			return fmt.Errorf("%s %d: %w", piece, n, err)
		}
	}
}

func (k *sink) putOne(ctx context.Context, e ledger.Event) error {
	if k.failed != nil {
		return k.failed
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if k.from != nil {
		if e = k.resumed(e); e == nil {
			return nil
		}
	}
	k.failed = k.emit(ctx, e)
	return k.failed
}

// resumed returns what is emitted of e on a resumed run, nil if it is left out.
func (k *sink) resumed(e ledger.Event) ledger.Event {
	if k.seen == nil {
		k.seen = make([]seenBlock, seenSlots)
	}
	switch e := e.(type) {
	case *ledger.Block:
		return k.resumedBlock(e)
	case *ledger.BaseState:
		if !k.passed {
			k.basesHeldBack++
			return nil
		}
	case *ledger.SlotStatus:
		return k.resumedStatus(e)
	}
	return e
}

func (k *sink) resumedBlock(b *ledger.Block) ledger.Event {
	if !k.sawBlock && k.basesHeldBack > 0 && b.Slot > k.from.Slot {
		k.log.Warn("base state in front of the first block is left out: the data directory holds blocks already; name new files after those that were read before",
			"first_slot", uint64(b.Slot), "resume_slot", uint64(k.from.Slot))
	}
	k.sawBlock = true
	if b.Slot < k.from.Slot {
		k.below = true
		return nil
	}
	k.passed = true
	k.found = k.found || b.Slot == k.from.Slot && b.Blockhash == k.from.Blockhash
	b, strays := k.branch(b)
	k.strayed = k.strayed || strays
	k.remember(b, strays)
	return b
}

// branch returns a block at or past the resume point, and whether it is on no branch with that, as far as the input says. A block that builds on
// such a one and does not say on which says so now, or it would be placed on what is held of that slot.
func (k *sink) branch(b *ledger.Block) (said *ledger.Block, strays bool) {
	on := k.seen[b.ParentSlot%seenSlots]
	switch {
	case !k.below:
		return b, false
	case b.Slot == k.from.Slot:
		return b, b.Blockhash != k.from.Blockhash
	case b.ParentSlot < k.from.Slot:
		return b, true
	case !on.strays || on.slot != b.ParentSlot:
		return b, false
	case b.PreviousBlockhash.Known || on.blocks > 1:
		return b, b.PreviousBlockhash == ledger.Some(on.hash)
	}
	named := *b
	named.PreviousBlockhash = ledger.Some(on.hash)
	return &named, true
}

// isOther reports whether an input that is read shows another ledger than that of the resume point.
func (k *sink) isOther() bool { return k.strayed && !k.found }

// remember notes a block, in the place of one too old to be asked for.
func (k *sink) remember(b *ledger.Block, strays bool) {
	switch s := &k.seen[b.Slot%seenSlots]; {
	case s.blocks == 0 || s.slot < b.Slot:
		*s = seenBlock{b.Slot, b.Blockhash, strays, 1}
	case s.slot == b.Slot && s.hash != b.Blockhash:
		s.blocks++
	}
}

// only returns the block of a slot, if just one was seen and not too long ago.
func (k *sink) only(slot ledger.Slot) (hash ledger.Opt[ledger.Hash]) {
	if s := &k.seen[slot%seenSlots]; s.slot == slot && s.blocks == 1 {
		hash = ledger.Some(s.hash)
	}
	return hash
}

// resumedStatus returns a status past the resume point, with the block it meant when it was
// read first: the sequencer may know another one of that slot by now. Of those before one is left, which says that
// what is final is final: the sequencer has to know that the input has statuses.
func (k *sink) resumedStatus(s *ledger.SlotStatus) ledger.Event {
	first := !k.spoke
	k.spoke = true
	switch {
	case s.Slot <= k.from.Slot && first:
		return &ledger.SlotStatus{Slot: k.from.Slot, Status: ledger.StatusFinalized}
	case s.Slot <= k.from.Slot:
		return nil
	case s.Blockhash.Known:
		return s
	}
	return &ledger.SlotStatus{Slot: s.Slot, Status: s.Status, Blockhash: k.only(s.Slot)}
}
