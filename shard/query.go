package shard

import (
	"sync"
	"time"

	"ledgerd/engine/ledger"
)

// accountQuery asks for one account. It is the question asked most, so it is pooled and
// answered by value: asking allocates nothing.
type accountQuery struct {
	key     ledger.Pubkey
	version ledger.Version
	account ledger.Account
	found   bool
	err     error
	done    chan struct{} // room for one answer, so the owner never waits
	timer   *time.Timer
}

var accountQueries = sync.Pool{New: func() any {
	t := time.NewTimer(time.Hour)
	t.Stop()
	return &accountQuery{done: make(chan struct{}, 1), timer: t}
}}

func (q *accountQuery) run(s *state) {
	q.found, q.err = false, nil
	if q.version < s.folded {
		q.err = ErrFolded
	} else if a := s.account(&q.key, q.version); a != nil {
		q.account, q.found = *a, true
	}
	q.done <- struct{}{}
}

// Account returns the account at version v; found is false if nothing is held, not even
// a tombstone. Errors match ledger.ErrUnavailable.
func (s *Shard) Account(key ledger.Pubkey, v ledger.Version, deadline time.Time) (a ledger.Account, found bool, err error) {
	q := accountQueries.Get().(*accountQuery)
	q.key, q.version = key, v
	if err := s.ask(q, q.done, q.timer, deadline); err != nil {
		return a, false, err // the owner may still write into q: it is not pooled again
	}
	a, found, err = q.account, q.found, q.err
	q.account = ledger.Account{} // the pool pins nothing
	accountQueries.Put(q)
	return a, found, err
}

// ask sends q and waits until it was run, the deadline passed or the shard ended.
func (s *Shard) ask(q query, done <-chan struct{}, timer *time.Timer, deadline time.Time) error {
	select {
	case s.queries <- q:
	default:
		return errBusy
	}
	timer.Reset(time.Until(deadline))
	defer timer.Stop()
	select {
	case <-done:
		return nil
	case <-s.done:
		return errStopped
	case <-timer.C:
		return errLate
	}
}

// question asks anything else: answer runs on the shard's goroutine, bounded to some
// hundred look-ups, and must not keep the state.
type question[R any] struct {
	version ledger.Version
	answer  func(*state) R
	result  R
	err     error
	done    chan struct{}
}

func (q *question[R]) run(s *state) {
	if q.version < s.folded {
		q.err = ErrFolded
	} else {
		q.result = q.answer(s)
	}
	q.done <- struct{}{}
}

func askAt[R any](s *Shard, v ledger.Version, deadline time.Time, answer func(*state) R) (R, error) {
	q := &question[R]{version: v, answer: answer, done: make(chan struct{}, 1)}
	timer := time.NewTimer(time.Hour)
	if err := s.ask(q, q.done, timer, deadline); err != nil {
		var none R
		return none, err
	}
	return q.result, q.err
}

// Accounts returns the accounts at version v in the order asked; missing ones do not exist.
// The keys must belong to the shard and be few (hundreds).
func (s *Shard) Accounts(keys []ledger.Pubkey, v ledger.Version, deadline time.Time) ([]ledger.Account, error) {
	return askAt(s, v, deadline, func(st *state) []ledger.Account {
		out := make([]ledger.Account, len(keys))
		for i := range keys {
			out[i].Pubkey = keys[i]
			if a := st.account(&keys[i], v); a != nil {
				out[i] = *a
			}
		}
		return out
	})
}

// Mints returns the facts of mints at version v in the order asked, nil for unknown ones.
func (s *Shard) Mints(keys []ledger.Pubkey, v ledger.Version, deadline time.Time) ([]*ledger.Mint, error) {
	return askAt(s, v, deadline, func(st *state) []*ledger.Mint {
		out := make([]*ledger.Mint, len(keys))
		for i := range keys {
			out[i] = st.mintAt(&keys[i], v)
		}
		return out
	})
}

// Transaction returns the transaction at version v, nil if it is not held there.
func (s *Shard) Transaction(sig ledger.Signature, v ledger.Version, deadline time.Time) (*ledger.Transaction, error) {
	return askAt(s, v, deadline, func(st *state) *ledger.Transaction {
		return st.transactions.at(&ledger.Transaction{Signature: sig}, v)
	})
}

// Block returns the block at slot at version v, nil if the chain has none there.
func (s *Shard) Block(slot ledger.Slot, v ledger.Version, deadline time.Time) (*HeldBlock, error) {
	return askAt(s, v, deadline, func(st *state) *HeldBlock {
		return st.blocks.at(blockKey(slot), v)
	})
}

// BlockAbove returns the shard's first block of a higher slot at version v, nil if none.
func (s *Shard) BlockAbove(slot ledger.Slot, v ledger.Version, deadline time.Time) (*HeldBlock, error) {
	return askAt(s, v, deadline, func(st *state) (above *HeldBlock) {
		st.blocks.ascend(blockKey(slot+1), v, func(b *HeldBlock) bool {
			above = b
			return false
		})
		return above
	})
}

func blockKey(slot ledger.Slot) *HeldBlock {
	return &HeldBlock{Block: &ledger.Block{Slot: slot}}
}
