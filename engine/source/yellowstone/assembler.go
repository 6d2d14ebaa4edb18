package yellowstone

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"slices"

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
	slots   map[ledger.Slot][]*assembly // the tries of each slot that are not over, the newest bank last
	open    int                         // their number
	done    recent[[]ending]            // likewise, those that are over
	stream  int                         // the number of calls of Reconnected
	taken   uint64                      // the number of updates, over all streams
	bytes   int                         // the sum of those of slots
	startup ledger.BaseState            // not emitted yet
	sealed  []*sealedBlock              // the newest, the oldest first

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
	return &Assembler{emit: emit, slots: make(map[ledger.Slot][]*assembly)}
}

// Reconnected begins another stream: blocks that are not whole are dropped, and a block that comes again is emitted again.
func (a *Assembler) Reconnected() {
	for s := range a.tries() {
		if s.wants == wantsBegin {
			a.Counts.Partial++
		}
	}
	clear(a.slots)
	a.open = 0
	a.frozen.clear()
	a.stream++
	a.bytes = 0
	a.startup = ledger.BaseState{}
}

// Unfinished returns the number of blocks that are not whole.
func (a *Assembler) Unfinished() int { return a.open }

// tries visits all blocks that are not whole.
func (a *Assembler) tries() iter.Seq[*assembly] {
	return func(visit func(*assembly) bool) {
		for _, tries := range a.slots {
			for _, s := range tries {
				if !visit(s) {
					return
				}
			}
		}
	}
}

// Expects reports whether the rest of a slot's block may come, of which a part came.
func (a *Assembler) Expects(slot ledger.Slot) bool {
	return slices.ContainsFunc(a.slots[slot], func(s *assembly) bool { return s.wants != wantsBegin })
}

// InPart returns the lowest of some slots whose block came in part, false if there is none: a server that is asked to
// replay it on the same connection tells the whole.
func (a *Assembler) InPart(after, upTo ledger.Slot) (lowest ledger.Slot, found bool) {
	for s := range a.tries() {
		if s.wants == wantsBegin && s.slot > after && s.slot <= upTo && (!found || s.slot < lowest) {
			lowest, found = s.slot, true
		}
	}
	return lowest, found
}

// ShowsElsewhere reports whether this stream showed a block of a hash, or its head alone, at another slot.
func (a *Assembler) ShowsElsewhere(hash ledger.Hash, than ledger.Slot) bool {
	for s := range a.tries() {
		if s.slot != than && s.head != nil && s.head.Hash == hash {
			return true
		}
	}
	return a.done.contains(func(slot ledger.Slot, ends []ending) bool {
		return slot != than && slices.ContainsFunc(ends, func(e ending) bool { return e.stream == a.stream && !e.dead && e.hash == hash })
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

// over returns what became of the try that an update is about, if that is known from this stream: of its bank, or where it does
// not say that, of the newest.
func (a *Assembler) over(u *Update) (ending, bool) {
	if a.find(u) != nil {
		return ending{}, false
	}
	return a.newestEnding(u.Slot, func(e ending) bool { return isTry(e.bank, u.Bank) })
}

// newestEnding returns what became of the newest try of a slot in this stream for which is returns true.
func (a *Assembler) newestEnding(slot ledger.Slot, is func(ending) bool) (ending, bool) {
	ends, _ := a.done.get(slot)
	for _, e := range slices.Backward(ends) {
		if e.stream == a.stream && is(e) {
			return e, true
		}
	}
	return ending{}, false
}

// sealedTry returns the newest sealed block of a slot whose status came without its bank, while another try of the slot is not processed
// or is dead: the status is of that block.
func (a *Assembler) sealedTry(u *Update) (ending, bool) {
	if s := a.find(u); u.Bank != 0 || s != nil && s.processed {
		return ending{}, false
	}
	return a.newestEnding(u.Slot, func(e ending) bool { return !e.dead })
}

// isTry reports whether an update of a bank is about the try of a bank; 0 is any.
func isTry(try, bank uint64) bool { return try == bank || try == 0 || bank == 0 }

// find returns the try that an update is about, if there is one that is not over.
func (a *Assembler) find(u *Update) *assembly {
	for _, s := range slices.Backward(a.slots[u.Slot]) {
		if isTry(s.bank, u.Bank) {
			s.bank = max(s.bank, u.Bank)
			return s
		}
	}
	return nil
}

// at returns the try that an update is about, which must not be over, and adds bytes to its size.
func (a *Assembler) at(u *Update, bytes int) (*assembly, error) {
	s := a.find(u)
	if s == nil {
		s = newAssembly(u.Slot, u.Bank, a.taken)
		a.slots[u.Slot] = append(a.slots[u.Slot], s)
		slices.SortStableFunc(a.slots[u.Slot], func(x, y *assembly) int { return cmp.Compare(x.bank, y.bank) })
		bytes += assemblyBytes
		a.open++
	}
	s.bytes += bytes
	if a.bytes += bytes; a.bytes > maxBytes || a.open > maxSlots {
		return nil, errTooMuch
	}
	return s, nil
}

// drop removes a try.
func (a *Assembler) drop(s *assembly) {
	a.bytes -= s.bytes
	a.open--
	left := slices.DeleteFunc(a.slots[s.slot], func(o *assembly) bool { return o == s })
	if a.slots[s.slot] = left; len(left) == 0 {
		delete(a.slots, s.slot)
	}
}

func (a *Assembler) takeAccount(u *Update) error {
	if end, ok := a.over(u); ok {
		a.takeLate(u, end)
		return nil
	}
	s, err := a.at(u, accountBytes)
	if err == nil && !s.write(u.Write, u.WriteVersion) {
		a.Counts.Duplicates++
	}
	return err
}

func (a *Assembler) takeTransaction(ctx context.Context, u *Update) error {
	a.HasTransactions = true
	if _, ok := a.over(u); ok {
		a.Counts.Duplicates++
		return nil
	}
	s, err := a.at(u, transactionBytes+len(u.Transaction.Accounts)*len(ledger.Pubkey{}))
	if err != nil {
		return err
	}
	if !s.transact(u) {
		a.Counts.Duplicates++
	}
	return a.sealIfWhole(ctx, s)
}

func (a *Assembler) takeHead(ctx context.Context, u *Update) error {
	if end, ok := a.over(u); ok {
		if end.hash != u.Head.Hash && !end.dead {
			return &TwoBlocksError{u.Slot}
		}
		a.Counts.Duplicates++
		return nil
	}
	s, err := a.at(u, 0)
	if err != nil {
		return err
	}
	switch {
	case s.head == nil:
		head := u.Head
		s.head = &head
		if s.begin == beginUnsaid {
			if err := a.follow(ctx, s); err != nil {
				return err
			}
		}
	case s.head.Hash != u.Head.Hash:
		return &TwoBlocksError{u.Slot}
	default:
		a.Counts.Duplicates++
		if s.begin == beginUnsaid && s.processed {
			s.begin = beginReplayed
		}
	}
	return a.sealIfWhole(ctx, s)
}
