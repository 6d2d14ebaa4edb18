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
	short     bool          // it is claimed and misses transactions, which may still come

	writes
	transactions []ledger.Transaction // as they came
	indexes      map[uint32]struct{}  // of those

	bytes int // of the updates taken, about
}

// writes holds the newest write of each account.
type writes struct {
	accounts []ledger.AccountWrite
	versions []uint64              // of accounts
	place    map[ledger.Pubkey]int // in accounts
}

func newAssembly(since uint64) *assembly {
	return &assembly{since: since, writes: newWrites(), indexes: make(map[uint32]struct{})}
}

func newWrites() writes { return writes{place: make(map[ledger.Pubkey]int)} }

// write takes a write of an account, false if it knew a newer one. Of writes with the same version,
// or without any, the later one counts.
func (w *writes) write(account ledger.AccountWrite, version uint64) bool {
	i, ok := w.place[account.Pubkey]
	switch {
	case !ok:
		w.place[account.Pubkey] = len(w.accounts)
		w.accounts, w.versions = append(w.accounts, account), append(w.versions, version)
	case version < w.versions[i]:
		return false
	default:
		w.accounts[i], w.versions[i] = account, version
	}
	return true
}

// transact takes a transaction, false if it is there.
func (s *assembly) transact(t ledger.Transaction) bool {
	if _, ok := s.indexes[t.Index]; ok {
		return false
	}
	s.indexes[t.Index] = struct{}{}
	s.transactions = append(s.transactions, t)
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
