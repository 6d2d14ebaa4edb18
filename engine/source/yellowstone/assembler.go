package yellowstone

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"ledgerd/engine/ledger"
)

const (
	// maxBytes bounds the memory of blocks that are not whole. A busy block of the main network takes some 20 MiB.
	maxBytes = 1 << 30
	// keptSlots is how far below the newest finalized slot a block may still become whole.
	keptSlots = 512
)

// maxSlots bounds the slots that are remembered, and with them what each status costs; a network makes so many in half an hour.
const maxSlots = 1 << 12

// errTooMuch ends a stream that never says that anything is whole.
var errTooMuch = errors.New("the stream holds more blocks that are not whole than 1 GiB, or names 4096 slots and none that is finalized")

// Assembler makes blocks of updates. One goroutine uses it.
type Assembler struct {
	// HasTransactions: a block waits for its transactions. The first transaction that comes sets it.
	HasTransactions bool
	// Filtered: the writes of some accounts come alone, so that a block may have none.
	Filtered bool
	// Live: the updates come over a connection, which begins in the middle of some slots and may lose updates. See the
	// package comment.
	Live bool

	// Counts are for the caller to read.
	Counts Counts

	emit   ledger.Emit
	slots  map[ledger.Slot]slot // of this stream
	taken  uint64               // the number of updates, over all streams
	bytes  int                  // the sum of those of open tries
	sealed []*assembly          // the newest, the oldest first, also of other streams: they have their writes
	unseen []ledger.Slot        // the newest of this stream that a status called confirmed or final before anything came of them
	bare   map[ledger.Hash]bool // blocks in part of which an earlier stream, the newest that showed any, told nothing but their heads

	// Of a live stream.
	asked     ledger.Slot // the slot of the newest error of missed; 0: none
	miscounts int         // blocks that were sealed although transactions were missing, less one for each believedBlocks of wholes
	wholes    uint64      // blocks with all their transactions since the first miscount
}

// Counts holds figures of an assembler.
type Counts struct {
	Sealed     uint64 // blocks emitted
	Incomplete uint64 // of those: confirmed before all their transactions came
	Duplicates uint64 // heads, transactions, statuses and writes that had come before
	Late       uint64 // account writes that came after their block: see takeLate
	Lost       uint64 // late ones that were dropped: of blocks with too many, and see lose
	Partial    uint64 // blocks of streams that are over, which may have begun in the middle of them
	Dropped    uint64 // blocks that are not whole, of slots far below the finalized one or with many tries
}

// NewAssembler returns an assembler without any slot, which emits blocks and statuses.
func NewAssembler(emit ledger.Emit) *Assembler {
	return &Assembler{emit: emit, slots: make(map[ledger.Slot]slot)}
}

// Reconnected begins another stream: blocks that are not whole are dropped, and a block that comes again is emitted again.
func (a *Assembler) Reconnected() {
	if len(a.slots) > 0 {
		a.bare = make(map[ledger.Hash]bool)
	}
	for s := range a.tries() {
		a.lose(s)
		if s.state == inPart {
			a.Counts.Partial++
			a.bare[s.head.Hash] = s.endAlone
		}
	}
	clear(a.slots)
	a.bytes, a.unseen = 0, nil
}

// Unfinished returns the number of blocks that are not whole.
func (a *Assembler) Unfinished() (n int) {
	for range a.tries() {
		n++
	}
	return n
}

// Expects reports whether the rest of a slot's block may come, of which a part came.
func (a *Assembler) Expects(slot ledger.Slot) bool {
	return slices.ContainsFunc(a.slots[slot].open, func(s *assembly) bool { return s.state != inPart })
}

// InPart returns the lowest of some slots whose block came in part, false if there is none: a server that is asked to
// replay it on the same connection tells the whole.
func (a *Assembler) InPart(after, upTo ledger.Slot) (lowest ledger.Slot, found bool) {
	for s := range a.tries() {
		if s.state == inPart && s.slot > after && s.slot <= upTo && (!found || s.slot < lowest) {
			lowest, found = s.slot, true
		}
	}
	return lowest, found
}

// ShowsElsewhere reports whether this stream showed a block of a hash, or its head alone, at another slot.
func (a *Assembler) ShowsElsewhere(hash ledger.Hash, than ledger.Slot) bool {
	isIt := func(s *assembly) bool { return s.head != nil && s.head.Hash == hash }
	for at, slot := range a.slots {
		if at != than && (slices.ContainsFunc(slot.open, isIt) || slices.ContainsFunc(slot.over, isIt)) {
			return true
		}
	}
	return false
}

// Take adds an update and emits the blocks that are whole now. It returns the error of emit, or why the stream is no
// good: then the caller calls Reconnected, or Take no more.
func (a *Assembler) Take(ctx context.Context, u *Update) error {
	if a.bytes > maxBytes || len(a.slots) > maxSlots {
		return errTooMuch
	}
	a.taken++
	switch u.Kind {
	case Account:
		a.takeAccount(u)
	case Transaction, TransactionStatus:
		return a.takeTransaction(ctx, u)
	case Meta:
		return a.takeHead(ctx, u)
	case Slot:
		return a.takeStatus(ctx, u)
	}
	return nil
}

func (a *Assembler) takeAccount(u *Update) {
	s := a.at(u)
	if s.isOver() {
		a.takeLate(u, s)
		return
	}
	s.again = s.processed
	bytes, isTaken := s.write(u.Write, u.WriteVersion)
	if !isTaken {
		a.Counts.Duplicates++
	}
	a.grow(s, bytes)
}

func (a *Assembler) takeTransaction(ctx context.Context, u *Update) error {
	a.HasTransactions = true
	s := a.at(u)
	s.again = s.processed
	if s.isOver() || !s.transact(u) {
		a.Counts.Duplicates++
	} else {
		a.grow(s, transactionBytes+len(u.Transaction.Accounts)*len(ledger.Pubkey{}))
	}
	return a.advance(ctx, s)
}

func (a *Assembler) takeHead(ctx context.Context, u *Update) error {
	s := a.at(u)
	switch {
	case s.head != nil && s.head.Hash != u.Head.Hash:
		return fmt.Errorf("%w at slot %d", ErrTwoBlocks, u.Slot)
	case s.head != nil || s.isOver():
		a.Counts.Duplicates++
		if s.begin <= beginAmid && (s.again || a.Filtered && s.processed) {
			s.begin = beginReplayed
		}
		return a.advance(ctx, s)
	}
	head := u.Head
	s.head = &head
	if parent := a.parent(s); parent != nil && s.begin == beginUnsaid {
		parent.followed = true
		if err := a.advance(ctx, parent); err != nil {
			return err
		}
	}
	return a.advance(ctx, s)
}
