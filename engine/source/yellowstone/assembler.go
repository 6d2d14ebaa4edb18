package yellowstone

import (
	"context"
	"errors"
	"fmt"

	"ledgerd/engine/ledger"
)

const (
	// maxBytes bounds what is held of blocks that are not whole. A main network's busiest
	// block takes some 20 MiB.
	maxBytes = 1 << 30
	// keptSlots is how many slots below the newest finalized one are remembered, so that a
	// duplicate or a late update is known as such.
	keptSlots = 512
	// startupBatch is how many accounts of a validator's start are emitted at once.
	startupBatch = 4096
)

// errTooMuch ends a stream that never says that anything is whole.
var errTooMuch = errors.New("the stream holds more than 1 GiB of blocks that are not whole")

// Assembler makes blocks of updates. One goroutine uses it.
type Assembler struct {
	// Emit takes the events.
	Emit ledger.Emit
	// HasTransactions says that blocks have to wait for their transactions. It becomes true with
	// the first one that comes.
	HasTransactions bool

	// Counts of what came; whoever uses the assembler reads them.
	Counts Counts

	slots   map[ledger.Slot]*assembly
	done    map[ledger.Slot]ending
	stream  int              // how often it began again
	bytes   int              // of all assemblies, about
	startup ledger.BaseState // not emitted yet
}

// Counts tells what an assembler saw.
type Counts struct {
	Sealed     uint64 // blocks emitted
	Incomplete uint64 // of those: confirmed before all their transactions came
	Duplicates uint64 // blocks, statuses and writes that had come before
	Late       uint64 // account writes of a block that was sealed
	Dead       uint64 // slots whose block is broken
	Dropped    uint64 // slots of which finality was told, but never a whole block
}

// ending is what became of a slot's block.
type ending struct {
	hash   ledger.Hash
	dead   bool
	stream int // the stream that told it
}

// NewAssembler returns an assembler without any slot.
func NewAssembler(emit ledger.Emit) *Assembler {
	return &Assembler{Emit: emit, slots: make(map[ledger.Slot]*assembly), done: make(map[ledger.Slot]ending)}
}

// Reconnected forgets what is not whole: the stream begins again somewhere. A block that
// comes again whole is known by its hash and not emitted twice.
func (a *Assembler) Reconnected() {
	clear(a.slots)
	a.stream++
	a.bytes = 0
	a.startup = ledger.BaseState{}
}

// Unfinished returns how many slots something came of, but no whole block.
func (a *Assembler) Unfinished() int { return len(a.slots) }

// Take adds an update and emits what is whole now. It returns the error of Emit, or says how the
// stream contradicts itself; then nothing more may be taken from this stream.
func (a *Assembler) Take(ctx context.Context, u *Update) error {
	if u.Kind == Account && u.Startup {
		return a.takeStartup(ctx, u)
	}
	if err := a.Flush(ctx); err != nil {
		return err
	}
	switch u.Kind {
	case Account:
		return a.takeAccount(ctx, u)
	case Transaction:
		return a.takeTransaction(ctx, u)
	case Meta:
		return a.takeHead(ctx, u)
	case Slot:
		return a.takeStatus(ctx, u)
	}
	return nil
}

// Flush emits the accounts of a validator's start that wait for more of them.
func (a *Assembler) Flush(ctx context.Context) error {
	if len(a.startup.Accounts) == 0 {
		return nil
	}
	state := a.startup
	a.startup = ledger.BaseState{}
	return a.Emit(ctx, &state)
}

func (a *Assembler) takeStartup(ctx context.Context, u *Update) error {
	if u.Slot != a.startup.Slot || len(a.startup.Accounts) == startupBatch {
		if err := a.Flush(ctx); err != nil {
			return err
		}
	}
	a.startup.Slot = u.Slot
	a.startup.Accounts = append(a.startup.Accounts, u.Write)
	return nil
}

// over returns what became of a slot's block, if this stream told it already.
func (a *Assembler) over(slot ledger.Slot) (ending, bool) {
	e, ok := a.done[slot]
	return e, ok && e.stream == a.stream
}

// at returns the assembly of a slot, which must not be over.
func (a *Assembler) at(slot ledger.Slot) (*assembly, error) {
	s := a.slots[slot]
	if s == nil {
		if a.bytes > maxBytes {
			return nil, errTooMuch
		}
		s = newAssembly()
		a.slots[slot] = s
		a.bytes += s.bytes
	}
	return s, nil
}

func (a *Assembler) takeAccount(ctx context.Context, u *Update) error {
	if end, ok := a.over(u.Slot); ok {
		if end.dead {
			return nil
		}
		// Nothing is left out in silence: it counts like what is fetched later.
		a.Counts.Late++
		return a.Emit(ctx, &ledger.BaseState{Slot: u.Slot, Accounts: []ledger.AccountWrite{u.Write}})
	}
	_, err := a.add(u.Slot, func(s *assembly) bool { return s.write(u) })
	return err
}

func (a *Assembler) takeTransaction(ctx context.Context, u *Update) error {
	a.HasTransactions = true
	if _, ok := a.over(u.Slot); ok {
		a.Counts.Duplicates++
		return nil
	}
	s, err := a.add(u.Slot, func(s *assembly) bool { return s.transact(u) })
	if err != nil {
		return err
	}
	return a.sealIfWhole(ctx, u.Slot, s)
}

// add has the assembly of a slot take something, which says whether that was new.
func (a *Assembler) add(slot ledger.Slot, take func(s *assembly) bool) (*assembly, error) {
	s, err := a.at(slot)
	if err != nil {
		return nil, err
	}
	before := s.bytes
	if !take(s) {
		a.Counts.Duplicates++
	}
	if a.bytes += s.bytes - before; a.bytes > maxBytes {
		return nil, errTooMuch
	}
	return s, nil
}

func (a *Assembler) takeHead(ctx context.Context, u *Update) error {
	if end, ok := a.over(u.Slot); ok {
		if end.hash != u.Head.Hash && !end.dead {
			return twoBlocks(u.Slot)
		}
		a.Counts.Duplicates++
		return nil
	}
	s, err := a.at(u.Slot)
	if err != nil {
		return err
	}
	switch {
	case s.head == nil:
		head := u.Head
		s.head = &head
	case s.head.Hash != u.Head.Hash:
		return twoBlocks(u.Slot)
	default:
		a.Counts.Duplicates++
	}
	return a.sealIfWhole(ctx, u.Slot, s)
}

func twoBlocks(slot ledger.Slot) error {
	return fmt.Errorf("the stream shows two blocks at slot %d", slot)
}

// sealIfWhole seals the block of a slot if all of it is there, or a status says that it is.
func (a *Assembler) sealIfWhole(ctx context.Context, slot ledger.Slot, s *assembly) error {
	if s.head == nil {
		return nil
	}
	whole := !a.HasTransactions || uint64(len(s.transactions)) >= s.head.Transactions
	if s.claimed == 0 && !(whole && s.processed) {
		return nil
	}
	delete(a.slots, slot)
	a.bytes -= s.bytes
	before, cameBefore := a.done[slot]
	a.end(slot, ending{hash: s.head.Hash})
	if cameBefore && before.hash == s.head.Hash && !before.dead {
		a.Counts.Duplicates++
	} else {
		a.Counts.Sealed++
		if !whole {
			a.Counts.Incomplete++
		}
		if err := a.Emit(ctx, s.seal(slot)); err != nil {
			return err
		}
	}
	if s.claimed == 0 {
		return nil
	}
	return a.Emit(ctx, &ledger.SlotStatus{Slot: slot, Status: s.claimed, Blockhash: ledger.Some(s.head.Hash)})
}

// end notes what became of a slot's block. A stream that never tells of finality must not have
// everything remembered.
func (a *Assembler) end(slot ledger.Slot, e ending) {
	e.stream = a.stream
	a.done[slot] = e
	if len(a.done) > 4*keptSlots && slot > 2*keptSlots {
		a.forget(slot - keptSlots)
	}
}
