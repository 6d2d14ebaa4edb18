package shard

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"ledgerd/engine/ledger"
)

// accountQuery asks for one account by mail. It is the question asked most, so it is pooled
// and answered by value: asking allocates nothing.
//
// Its asker waits for done alone. A question ends in one of three ways, and whoever ends it
// tells the asker: the shard answers it, or refuses it where it ended, or the timer finds it
// overdue. The timer is not stopped with the question: it looks at the next one of the query
// and is set again if that one has time left. So it is touched once in a deadline's length
// and not twice a question, which with the waiting for several channels cost as much as the
// look-up.
type accountQuery struct {
	key     ledger.Pubkey
	version ledger.Version
	account ledger.Account
	found   bool
	err     error
	done    chan error // room for one, so whoever ends the question never waits

	turn     atomic.Uint64 // odd: a question is under way; even: it ended
	deadline atomic.Int64  // nanoseconds since epoch
	due      atomic.Int64  // when the timer fires, 0: it is not set, or about to look
	timer    *time.Timer
}

// epoch is what deadlines are kept relative to.
var epoch = time.Now()

var accountQueries = sync.Pool{New: func() any {
	q := &accountQuery{done: make(chan error, 1)}
	q.timer = time.AfterFunc(time.Hour, q.checkDeadline)
	q.timer.Stop()
	return q
}}

// checkDeadline is the timer's: it ends a question that is overdue. That another question
// may have begun meanwhile is seen by the turn.
func (q *accountQuery) checkDeadline() {
	q.due.Store(0)
	for {
		turn := q.turn.Load()
		if turn%2 == 0 {
			return
		}
		deadline := q.deadline.Load()
		if left := deadline - int64(time.Since(epoch)); left > 0 {
			q.setTimer(deadline, time.Duration(left))
			return
		}
		if q.end(turn, errLate) {
			return
		}
	}
}

func (q *accountQuery) setTimer(deadline int64, left time.Duration) {
	q.due.Store(deadline)
	q.timer.Reset(left)
}

// end tells the asker of a turn, unless that was told already.
func (q *accountQuery) end(turn uint64, err error) bool {
	if turn%2 == 0 || !q.turn.CompareAndSwap(turn, turn+1) {
		return false
	}
	q.done <- err
	return true
}

func (q *accountQuery) run(s *state) {
	q.found, q.err = false, nil
	if q.version < s.folded {
		q.err = ErrFolded
	} else {
		q.found = s.accounts.readShown(&q.key, q.version, &q.account)
	}
	q.end(q.turn.Load(), nil)
}

// refuse implements query.
func (q *accountQuery) refuse() { q.end(q.turn.Load(), errStopped) }

// Account returns the account at version v; found is false if nothing is held, not even
// a tombstone. It comes without what it would point at: who taught its fields earlier, and
// token facts, which Accounts and List tell. Errors match ledger.ErrUnavailable.
//
// Nearly always the shard waits for something to do. Then the asker looks by itself: two
// goroutines that take turns cost more than the look-up, three microseconds of CPU in all.
func (s *Shard) Account(key ledger.Pubkey, v ledger.Version, deadline time.Time) (a ledger.Account, found bool, err error) {
	s.way.Question()
	if found, err = s.look(&key, v, &a); err != errTaken {
		return a, found, err
	}
	return s.askAccount(key, v, deadline)
}

// errTaken says that somebody else is at the state.
var errTaken = errors.New("the shard is at work")

// look looks an account up in place, unless somebody else is at the state. What panics is to
// be asked by mail: there it breaks the shard, as it should.
func (s *Shard) look(key *ledger.Pubkey, v ledger.Version, into *ledger.Account) (found bool, err error) {
	if !s.mu.TryLock() {
		return false, errTaken
	}
	defer func() {
		s.mu.Unlock()
		if recover() != nil {
			err = errTaken
		}
	}()
	if v < s.state.folded {
		return false, ErrFolded
	}
	return s.state.accounts.readShown(key, v, into), nil
}

// askAccount is Account by mail.
func (s *Shard) askAccount(key ledger.Pubkey, v ledger.Version, deadline time.Time) (a ledger.Account, found bool, err error) {
	q := accountQueries.Get().(*accountQuery)
	q.key, q.version = key, v
	by := int64(deadline.Sub(epoch))
	q.deadline.Store(by)
	turn := q.turn.Add(1)
	select {
	case s.queries <- q:
	default:
		if q.turn.CompareAndSwap(turn, turn+1) { // else the timer has put an end into done
			accountQueries.Put(q)
		}
		return a, false, errBusy
	}
	if due := q.due.Load(); due == 0 || due > by {
		q.setTimer(by, time.Until(deadline))
	}
	s.refuseAfterEnd()
	if err := <-q.done; err != nil {
		return a, false, err // the owner may still write into q: it is not pooled again
	}
	a, found, err = q.account, q.found, q.err
	q.account = ledger.Account{} // or a question that finds nothing would be answered with it
	accountQueries.Put(q)
	return a, found, err
}

// refuseAfterEnd tells those who ask a shard that ended. Who sent a question before the end
// is told by Run, who sent one after it sees the end here.
func (s *Shard) refuseAfterEnd() {
	select {
	case <-s.done:
		s.refuseWaiting()
	default:
	}
}

// refuseWaiting empties the queries' lane.
func (s *Shard) refuseWaiting() {
	for {
		select {
		case q := <-s.queries:
			q.refuse()
		default:
			return
		}
	}
}

// ask sends q and waits until it was run, the deadline passed or the shard ended.
func (s *Shard) ask(q query, done <-chan struct{}, timer *time.Timer, deadline time.Time) error {
	s.way.Question()
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

// refuse implements query. Its asker sees by itself that the shard ended.
func (q *question[R]) refuse() {}

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
			st.accounts.read(&keys[i], v, &out[i])
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
	held, err := askAt(s, v, deadline, func(st *state) *heldTransaction {
		return st.transactions.at(&heldTransaction{signature: sig}, v)
	})
	if held == nil {
		return nil, err
	}
	return held.unpack(), nil
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
