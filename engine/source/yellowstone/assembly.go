package yellowstone

import (
	"cmp"
	"slices"

	"ledgerd/engine/ledger"
)

// What the parts of an assembly take in memory, about.
const assemblyBytes, accountBytes, transactionBytes = 512, 320, 256

// assembly is what came of one slot's block so far.
type assembly struct {
	head      *Head
	bank      uint64        // 0 if it was not told
	since     uint64        // the number of the first update of it
	begun     bool          // the stream told of it before it began
	processed bool          // no transaction of it writes any more
	claimed   ledger.Status // what it came to, 0 if that was not told

	accounts []ledger.AccountWrite // the newest write of each
	written

	transactions []ledger.Transaction // as they came
	indexes      map[uint32]struct{}  // of those

	bytes int
}

// written tells the newest write of each account.
type written struct {
	place    map[ledger.Pubkey]int // among the writes
	versions []uint64              // of the writes
}

// covers reports whether an update is no newer than what was written.
func (w *written) covers(u *Update) bool {
	i, ok := w.place[u.Write.Pubkey]
	return ok && u.WriteVersion <= w.versions[i]
}

func newAssembly(since uint64) *assembly {
	return &assembly{since: since, written: written{place: make(map[ledger.Pubkey]int)}, indexes: make(map[uint32]struct{}), bytes: assemblyBytes}
}

// write takes a write of an account, false if it knew a newer one. Of writes with the same version,
// or without any, the later one counts.
func (s *assembly) write(u *Update) bool {
	i, ok := s.place[u.Write.Pubkey]
	switch {
	case !ok:
		s.place[u.Write.Pubkey] = len(s.accounts)
		s.accounts, s.versions = append(s.accounts, u.Write), append(s.versions, u.WriteVersion)
		s.bytes += accountBytes
	case u.WriteVersion < s.versions[i]:
		return false
	default:
		s.accounts[i], s.versions[i] = u.Write, u.WriteVersion
	}
	return true
}

// transact takes a transaction, false if it is there.
func (s *assembly) transact(u *Update) bool {
	if _, ok := s.indexes[u.Transaction.Index]; ok {
		return false
	}
	s.indexes[u.Transaction.Index] = struct{}{}
	s.transactions = append(s.transactions, u.Transaction)
	s.bytes += transactionBytes + len(u.Transaction.Accounts)*len(ledger.Pubkey{})
	return true
}

// seal returns the block, which must have its head.
func (s *assembly) seal(slot ledger.Slot) *ledger.Block {
	b := &ledger.Block{
		Slot: slot, ParentSlot: s.head.ParentSlot,
		Blockhash: s.head.Hash, PreviousBlockhash: s.head.ParentHash,
		Time: s.head.Time, Height: s.head.Height,
		TransactionCount: max(s.head.Transactions, uint64(len(s.transactions))),
		Accounts:         s.accounts,
	}
	slices.SortFunc(s.transactions, func(x, y ledger.Transaction) int { return cmp.Compare(x.Index, y.Index) })
	b.Transactions = make([]ledger.Transaction, 0, len(s.transactions))
	for _, t := range s.transactions {
		b.AddTransaction(t)
	}
	return b
}
