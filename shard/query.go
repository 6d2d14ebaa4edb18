package shard

import (
	"time"

	"ledgerd/engine/ledger"
)

// question is a query at one version. The shard's goroutine calls answer, which must do at most some hundred
// look-ups and must not keep a reference to the state.
type question[R any] struct {
	reply[R]
	version ledger.Version
	answer  func(*state) R
}

func (q *question[R]) step(s *state) (more bool) {
	if q.version < s.folded {
		q.err = ErrFolded
	} else {
		q.result = q.answer(s)
	}
	return false
}

// queryAt enqueues a question and blocks until it is answered, the deadline passes or the shard stops.
func queryAt[R any](s *Shard, v ledger.Version, deadline time.Time, answer func(*state) R) (none R, err error) {
	s.way.Question()
	q := &question[R]{newReply[R](s), v, answer}
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
	case <-q.stopped:
		return none, errStopped
	case <-timer.C:
		return none, errLate
	}
}

// Account returns the account at version v without Token, Data and FieldProvenance, which Accounts and List return.
// found is false if there is neither an account nor a tombstone. Errors match ledger.ErrUnavailable.
func (s *Shard) Account(key ledger.Pubkey, v ledger.Version, deadline time.Time) (ledger.Account, bool, error) {
	a, err := queryAt(s, v, deadline, func(st *state) (a ledger.Opt[ledger.Account]) {
		a.Known = st.accounts.readShallow(&key, v, &a.Value)
		return a
	})
	return a.Value, a.Known, err
}

// TryAccount is Account on the caller's goroutine. answered is false where the caller must call Account instead: see tryRead.
func (s *Shard) TryAccount(key ledger.Pubkey, v ledger.Version) (a ledger.Account, found, answered bool) {
	answered = s.tryRead(v, func(st *state) { found = st.accounts.readShallow(&key, v, &a) })
	return a, found, answered
}

// tryRead calls read on the caller's goroutine. It reports false where the caller must enqueue a question instead: the lock of
// the state is taken, the version is folded, or read panicked. After a panic, read will panic on the shard's goroutine too, and
// so end the shard.
//
// The shard's goroutine is idle most of the time. Then callers read accounts themselves, many at once, because switching
// to the goroutine and back costs more than the look-up: three microseconds of CPU in all. read must not write to the
// state, so that callers can share the lock: with 32 callers on two processors, a read takes a third less CPU than where one in
// forty is sent to the goroutine. The goroutine waits until read returns, so read must be as short as the answer to a question.
func (s *Shard) tryRead(v ledger.Version, read func(*state)) (answered bool) {
	s.way.Question()
	if !s.mu.TryRLock() {
		return false
	}
	defer func() {
		s.mu.RUnlock()
		_ = recover()
	}()
	if v < s.state.folded {
		return false
	}
	read(s.state)
	return true
}

// Accounts sets out[i] to the account of keys[i] at version v, for each key that the shard owns; there may be some hundred of
// these. An account that is not stored has only its Pubkey. Their data is shared and never changes. Accounts reads on the
// caller's goroutine if it can, as TryAccount does. After an error the shard may still write to out.
func (s *Shard) Accounts(keys []ledger.Pubkey, v ledger.Version, deadline time.Time, out []ledger.Account) error {
	read := func(st *state) { st.readAccounts(keys, v, out) }
	if s.tryRead(v, read) {
		return nil
	}
	return s.readOnShard(v, deadline, read)
}

func (s *state) readAccounts(keys []ledger.Pubkey, v ledger.Version, out []ledger.Account) {
	for i := range keys {
		if s.owns(keys[i].Prefix()) {
			out[i].Pubkey = keys[i]
			s.accounts.unpackCopy(s.accounts.at(&keys[i], v), &out[i])
		}
	}
}

// Mints is Accounts for the facts of mints, nil for unknown ones. It always reads on the shard's goroutine.
func (s *Shard) Mints(keys []ledger.Pubkey, v ledger.Version, deadline time.Time, out []*ledger.Mint) error {
	return s.readOnShard(v, deadline, func(st *state) {
		for i := range keys {
			if st.owns(keys[i].Prefix()) {
				out[i] = st.mints.at(&keys[i], v)
			}
		}
	})
}

// readOnShard is queryAt for a read that stores its results in the caller's memory.
func (s *Shard) readOnShard(v ledger.Version, deadline time.Time, read func(*state)) error {
	_, err := queryAt(s, v, deadline, func(st *state) (none struct{}) {
		read(st)
		return none
	})
	return err
}
