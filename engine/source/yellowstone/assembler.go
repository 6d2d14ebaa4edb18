package yellowstone

import (
	"context"
	"errors"

	"ledgerd/engine/ledger"
)

const (
	// maxBytes bounds the memory of blocks that are not whole. A busy block of the main network takes some 20 MiB.
	maxBytes = 1 << 30
	// maxSlots bounds the number of blocks that are not whole; a validator works on a handful.
	maxSlots = 1 << 16
	// keptSlots is how far below the newest finalized slot a block may still become whole.
	keptSlots = 512
	// startupBatch is how many accounts of a validator's start are emitted at once.
	startupBatch = 4096
)

// errTooMuch ends a stream that never says that anything is whole.
var errTooMuch = errors.New("the stream holds more blocks that are not whole than 1 GiB or 65536 slots")

// Assembler makes blocks of updates. One goroutine uses it.
type Assembler struct {
	// HasTransactions: a block waits for its transactions. The first transaction that comes sets it.
	HasTransactions bool
	// Live: the updates come over a connection, which begins in the middle of some slots and may lose updates. See the
	// package comment.
	Live bool

	// Counts are for the caller to read.
	Counts Counts

	emit    ledger.Emit
	slots   map[ledger.Slot]*assembly
	done    recent[ending]
	stream  int              // the number of calls of Reconnected
	taken   uint64           // the number of updates, over all streams
	bytes   int              // the sum of those of slots
	startup ledger.BaseState // not emitted yet
	sealed  []*sealedBlock   // the newest, the oldest first

	// Of a live stream.
	frozen    recent[uint64] // value of taken at the first status by which a slot was processed, in this stream
	asked     ledger.Slot    // the slot of the newest ShortError; 0: none
	miscounts int            // blocks that were sealed although transactions were missing, less one for each believedBlocks of wholes
	wholes    uint64         // blocks with all their transactions since the first miscount
}

// Counts holds figures of an assembler.
type Counts struct {
	Sealed     uint64 // blocks emitted
	Incomplete uint64 // of those: confirmed before all their transactions came
	Duplicates uint64 // heads, transactions, statuses and writes that had come before
	Late       uint64 // account writes that came after their block: see takeLate
	Startup    uint64 // accounts of a validator's start
	Partial    uint64 // blocks of streams that are over, which may have begun in the middle of them
	Dropped    uint64 // slots far below the finalized one without a whole block
}

// ending is what became of a slot's block.
type ending struct {
	hash   ledger.Hash
	bank   uint64
	dead   bool
	stream int // the number of the stream
}

// NewAssembler returns an assembler without any slot, which emits blocks, statuses and base states.
func NewAssembler(emit ledger.Emit) *Assembler {
	return &Assembler{emit: emit, slots: make(map[ledger.Slot]*assembly)}
}

// Reconnected begins another stream: blocks that are not whole are dropped, and a block that comes again is emitted again.
func (a *Assembler) Reconnected() {
	for _, s := range a.slots {
		if s.inPart {
			a.Counts.Partial++
		}
	}
	clear(a.slots)
	a.frozen.clear()
	a.stream++
	a.bytes = 0
	a.startup = ledger.BaseState{}
}

// Unfinished returns the number of slots with a block that is not whole.
func (a *Assembler) Unfinished() int { return len(a.slots) }

// Expects reports whether the rest of a slot's block may come, of which a part came.
func (a *Assembler) Expects(slot ledger.Slot) bool {
	s := a.slots[slot]
	return s != nil && !s.inPart
}

// InPart returns the lowest of some slots whose block came in part, false if there is none: a server that is asked to
// replay it on the same connection tells the whole.
func (a *Assembler) InPart(after, upTo ledger.Slot) (lowest ledger.Slot, found bool) {
	for slot, s := range a.slots {
		if s.inPart && slot > after && slot <= upTo && (!found || slot < lowest) {
			lowest, found = slot, true
		}
	}
	return lowest, found
}

// ShowsElsewhere reports whether this stream showed a block of a hash, or its head alone, at another slot.
func (a *Assembler) ShowsElsewhere(hash ledger.Hash, than ledger.Slot) bool {
	for slot, s := range a.slots {
		if slot != than && s.head != nil && s.head.Hash == hash {
			return true
		}
	}
	return a.done.contains(func(slot ledger.Slot, e ending) bool {
		return slot != than && e.stream == a.stream && !e.dead && e.hash == hash
	})
}

// Take adds an update and emits the blocks that are whole now. It returns the error of emit, or why the stream is no
// good: then the caller calls Reconnected, or Take no more.
func (a *Assembler) Take(ctx context.Context, u *Update) error {
	if u.Kind == Account && u.Startup {
		return a.takeStartup(ctx, u)
	}
	if err := a.Flush(ctx); err != nil {
		return err
	}
	a.taken++
	if u.Bank != 0 && a.ofEarlierTry(u) {
		a.Counts.Duplicates++
		return nil
	}
	switch u.Kind {
	case Account:
		return a.takeAccount(u)
	case Transaction, TransactionStatus:
		return a.takeTransaction(ctx, u)
	case Meta:
		return a.takeHead(ctx, u)
	case Slot:
		return a.takeStatus(ctx, u)
	}
	return nil
}

// Flush emits the accounts of a validator's start that were collected.
func (a *Assembler) Flush(ctx context.Context) error {
	if len(a.startup.Accounts) == 0 {
		return nil
	}
	state := a.startup
	a.startup = ledger.BaseState{}
	return a.emit(ctx, &state)
}

func (a *Assembler) takeStartup(ctx context.Context, u *Update) error {
	if u.Slot != a.startup.Slot || len(a.startup.Accounts) == startupBatch {
		if err := a.Flush(ctx); err != nil {
			return err
		}
	}
	a.Counts.Startup++
	a.startup.Slot = u.Slot
	a.startup.Accounts = append(a.startup.Accounts, u.Write)
	return nil
}

// over returns what became of a slot's block, if that is known from this stream.
func (a *Assembler) over(slot ledger.Slot) (ending, bool) {
	e, ok := a.done.get(slot)
	return e, ok && e.stream == a.stream
}

// at returns the assembly of a slot, which must not be over, and adds bytes to its size.
func (a *Assembler) at(slot ledger.Slot, bytes int) (*assembly, error) {
	s := a.slots[slot]
	if s == nil {
		s = newAssembly(a.taken)
		a.slots[slot] = s
		bytes += assemblyBytes
	}
	s.bytes += bytes
	if a.bytes += bytes; a.bytes > maxBytes || len(a.slots) > maxSlots {
		return nil, errTooMuch
	}
	return s, nil
}

// ofEarlierTry reports whether an update belongs to an earlier try of its slot. The first update of a later try drops
// the assembly of the earlier one.
func (a *Assembler) ofEarlierTry(u *Update) bool {
	if s := a.slots[u.Slot]; s != nil {
		switch {
		case u.Bank < s.bank:
			return true
		case u.Bank > s.bank && s.bank != 0:
			a.drop(u.Slot, s)
		default:
			s.bank = u.Bank
		}
		return false
	}
	end, ok := a.over(u.Slot)
	if !ok || end.bank == 0 || u.Bank == end.bank {
		return false
	}
	if u.Bank > end.bank {
		a.done.delete(u.Slot)
	}
	return u.Bank < end.bank
}

// drop removes the assembly of a slot.
func (a *Assembler) drop(slot ledger.Slot, s *assembly) {
	a.bytes -= s.bytes
	delete(a.slots, slot)
}

func (a *Assembler) takeAccount(u *Update) error {
	if end, ok := a.over(u.Slot); ok {
		a.takeLate(u, end)
		return nil
	}
	s, err := a.at(u.Slot, accountBytes)
	if err == nil && !s.write(u.Write, u.WriteVersion) {
		a.Counts.Duplicates++
	}
	return err
}

func (a *Assembler) takeTransaction(ctx context.Context, u *Update) error {
	a.HasTransactions = true
	if _, ok := a.over(u.Slot); ok {
		a.Counts.Duplicates++
		return nil
	}
	s, err := a.at(u.Slot, transactionBytes+len(u.Transaction.Accounts)*len(ledger.Pubkey{}))
	if err != nil {
		return err
	}
	if !s.transact(u) {
		a.Counts.Duplicates++
	}
	return a.sealIfWhole(ctx, u.Slot, s)
}

func (a *Assembler) takeHead(ctx context.Context, u *Update) error {
	if end, ok := a.over(u.Slot); ok {
		if end.hash != u.Head.Hash && !end.dead {
			return &TwoBlocksError{u.Slot}
		}
		a.Counts.Duplicates++
		return nil
	}
	s, err := a.at(u.Slot, 0)
	if err != nil {
		return err
	}
	switch {
	case s.head == nil:
		head := u.Head
		s.head = &head
		if !s.begun {
			if err := a.follow(ctx, u.Slot, s.head); err != nil {
				return err
			}
		}
	case s.head.Hash != u.Head.Hash:
		return &TwoBlocksError{u.Slot}
	default:
		a.Counts.Duplicates++
		s.replayed = s.processed
	}
	return a.sealIfWhole(ctx, u.Slot, s)
}
