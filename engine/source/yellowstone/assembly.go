package yellowstone

import (
	"cmp"
	"slices"

	"ledgerd/engine/ledger"
)

// Estimates of what the parts of an assembly take in memory.
const assemblyBytes, accountBytes, transactionBytes = 512, 320, 256

// assembly is the part of a block that came so far: of a try of its slot.
type assembly struct {
	slot      ledger.Slot
	bank      uint64 // of the updates; 0 if the server does not number tries
	head      *Head
	since     uint64        // the number of the first update; 0 if one before it was dropped
	begin     begin         // how the stream began to show it
	followed  bool          // a block builds on it that came without a word of its begin, too
	processed bool          // a status said so
	endAlone  bool          // nothing but its head had come when it was processed
	again     bool          // something of it came after it was processed
	claimed   ledger.Status // confirmed or finalized; 0 if no status said so
	state     state

	writes
	late         writes               // that came after the block
	inherited    writes               // late ones of the blocks that it builds on
	transactions []ledger.Transaction // as they came
	indexes      map[uint32]bool      // of those; false if only a status told of one

	bytes int // an estimate
}

// begin says how a stream began to show a block.
type begin uint8

const (
	beginUnsaid   begin = iota // no status said it: the stream may have begun in the middle of the block
	beginAmid                  // a status said so when it had written; a bank that is numbered has written sysvars by then
	beginShred                 // a status said that its first shred came
	beginBank                  // a status said that its bank was created, before it wrote anything
	beginReplayed              // the server replayed it: its head came again after it was processed
)

// state says what became of a try. The first three are open; the others are over.
type state uint8

const (
	gathering state = iota // the rest of it may come
	inPart                 // it is processed or claimed, but the stream may have begun in the middle of it
	short                  // it is claimed, but transactions are missing, which may still come
	sealed                 // the block was emitted; its head is kept
	dead                   // the server took it back; nothing of it is kept
)

// isEmpty reports whether nothing came of the try but statuses.
func (s *assembly) isEmpty() bool { return s.head == nil && len(s.accounts)+len(s.indexes) == 0 }

// isOver reports whether nothing changes the try any more.
func (s *assembly) isOver() bool { return s.state >= sealed }

// buildsOn reports whether a block, whose head came, names another as its parent. A parent is below its child: a genesis block names
// itself, and heads may name each other.
func (s *assembly) buildsOn(p *assembly) bool {
	isParent := p.head != nil && p.slot == s.head.ParentSlot && p.slot < s.slot
	return isParent && (!s.head.ParentHash.Known || s.head.ParentHash.Value == p.head.Hash)
}

// next returns the state that an open try comes to with what came of it.
func (a *Assembler) next(s *assembly) state {
	switch isWhole := a.whole(s); {
	case s.head == nil, s.claimed == 0 && !s.processed:
		return gathering
	case !a.begun(s):
		return inPart
	case isWhole:
		return sealed
	case s.claimed == 0:
		return gathering
	case a.Live && a.miscounts < believedMiscounts:
		return short
	}
	return sealed
}

// writes holds the newest write of each account.
type writes struct {
	accounts []ledger.AccountWrite
	versions []uint64              // of accounts
	place    map[ledger.Pubkey]int // in accounts
}

func newAssembly(slot ledger.Slot, bank, since uint64) *assembly {
	return &assembly{slot: slot, bank: bank, since: since, writes: newWrites(), late: newWrites(), inherited: newWrites(), indexes: make(map[uint32]bool)}
}

func newWrites() writes { return writes{place: make(map[ledger.Pubkey]int)} }

// write adds a write of an account, and returns how much more memory is held, or false if there is a newer one. Of writes with the same
// version, or without any, the later one counts.
func (w *writes) write(account ledger.AccountWrite, version uint64) (bytes int, isTaken bool) {
	bytes = account.Data.SizeBytes()
	i, ok := w.place[account.Pubkey]
	switch {
	case !ok:
		w.place[account.Pubkey] = len(w.accounts)
		w.accounts, w.versions = append(w.accounts, account), append(w.versions, version)
		return accountBytes + bytes, true
	case version < w.versions[i]:
		return 0, false
	}
	bytes -= w.accounts[i].Data.SizeBytes()
	w.accounts[i], w.versions[i] = account, version
	return bytes, true
}

// transact adds a transaction, or counts one of which the status came. It returns false if it is there.
func (s *assembly) transact(u *Update) bool {
	came, isKnown := s.indexes[u.Transaction.Index]
	if isTold := u.Kind == Transaction; came || isKnown && !isTold {
		return false
	} else if isTold {
		s.transactions = append(s.transactions, u.Transaction)
	}
	s.indexes[u.Transaction.Index] = u.Kind == Transaction
	return true
}

// take returns the block, whose head must have come, and leaves that, which writes it has, and what it inherited.
func (s *assembly) take() *ledger.Block {
	b := &ledger.Block{
		Slot: s.slot, ParentSlot: s.head.ParentSlot,
		Blockhash: s.head.Hash, PreviousBlockhash: s.head.ParentHash,
		Time: s.head.Time, Height: s.head.Height,
		TransactionCount: max(s.head.Transactions, uint64(len(s.transactions))),
		Accounts:         slices.Concat(s.accounts, s.inherited.accounts),
	}
	slices.SortFunc(s.transactions, func(x, y ledger.Transaction) int { return cmp.Compare(x.Index, y.Index) })
	b.Transactions = make([]ledger.Transaction, 0, len(s.transactions))
	for _, t := range s.transactions {
		b.AddTransaction(t)
	}
	s.accounts, s.transactions, s.indexes = nil, nil, nil
	return b
}
