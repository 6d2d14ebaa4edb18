package shard

import (
	"errors"
	"time"

	"ledgerd/engine/ledger"
)

// question asks for something at one version. Its answer runs on the shard's goroutine, is bounded to some hundred
// look-ups, and must not keep the state.
type question[R any] struct {
	version ledger.Version
	answer  func(*state) R
	result  R
	err     error
	done    chan struct{} // room for one: the shard does not wait for an asker that gave up
}

func (q *question[R]) run(s *state) {
	if q.version < s.folded {
		q.err = ErrFolded
	} else {
		q.result = q.answer(s)
	}
	q.done <- struct{}{}
}

// askAt enqueues a question and waits until it is answered, the deadline passed or the shard ended.
func askAt[R any](s *Shard, v ledger.Version, deadline time.Time, answer func(*state) R) (none R, err error) {
	s.way.Question()
	q := &question[R]{version: v, answer: answer, done: make(chan struct{}, 1)}
	select {
	case s.queries <- q:
	default:
		return none, errBusy
	}
	timer := time.NewTimer(time.Until(deadline))
	defer timer.Stop()
	select {
	case <-q.done:
		return q.result, q.err
	case <-s.done:
		return none, errStopped
	case <-timer.C:
		return none, errLate
	}
}

// Account returns the account at version v; found is false if nothing is held, not even
// a tombstone. It comes without what it would point at: who taught its fields earlier, and
// token facts, which Accounts and List tell. Errors match ledger.ErrUnavailable.
//
// Nearly always the shard waits for something to do. Then the asker looks by itself: two
// goroutines that take turns cost more than the look-up, three microseconds of CPU in all.
func (s *Shard) Account(key ledger.Pubkey, v ledger.Version, deadline time.Time) (a ledger.Account, found bool, err error) {
	s.way.Question()
	if found, err = s.look(&key, v, &a); err != errLocked {
		return a, found, err
	}
	return s.askAccount(key, v, deadline)
}

// errLocked says that the state is in use.
var errLocked = errors.New("the shard is at work")

// look looks an account up in place, unless the state is in use. After a panic it returns errLocked: the
// question is then enqueued and breaks the shard, as it should.
func (s *Shard) look(key *ledger.Pubkey, v ledger.Version, into *ledger.Account) (found bool, err error) {
	if !s.mu.TryLock() {
		return false, errLocked
	}
	defer func() {
		s.mu.Unlock()
		if recover() != nil {
			err = errLocked
		}
	}()
	if v < s.state.folded {
		return false, ErrFolded
	}
	return s.state.accounts.readShown(key, v, into), nil
}

// askAccount is Account by the shard's goroutine.
func (s *Shard) askAccount(key ledger.Pubkey, v ledger.Version, deadline time.Time) (a ledger.Account, found bool, err error) {
	held, err := askAt(s, v, deadline, func(st *state) *ledger.Account {
		if a := new(ledger.Account); st.accounts.readShown(&key, v, a) {
			return a
		}
		return nil
	})
	if held == nil {
		return ledger.Account{}, false, err
	}
	return *held, true, nil
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
			out[i] = st.mints.at(&keys[i], v)
		}
		return out
	})
}
