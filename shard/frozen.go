package shard

import (
	"errors"

	"ledgerd/engine/ledger"
	"ledgerd/shard/packed"
)

// Frozen is what a shard held at one version, for a snapshot to walk while the shard goes
// on. It stays as it is whatever is applied, folded or shed meanwhile, and pins what it
// lists until it is released. One goroutine at a time may walk it, whichever that is.
type Frozen struct {
	version ledger.Version
	over    *versions
	base    *packed.Frozen
	mints   *mints
}

// Release lets the shard use again what the copy pins. The copy must not be walked any more. One
// that is dropped without is released when the garbage collector finds it.
func (f *Frozen) Release() { f.base.Release() }

// Accounts calls visit for every account in pubkey order, tombstones included, until it
// returns false. An account is good until visit returns.
func (f *Frozen) Accounts(visit func(*ledger.Account) bool) {
	ascendFrozen(f.base, f.over, f.version, visit)
}

// Mints calls visit for the facts of every mint in pubkey order until it returns false.
func (f *Frozen) Mints(visit func(ledger.MintWrite) bool) {
	f.mints.ascend(&ledger.Pubkey{}, f.version, func(m *mintFacts) bool {
		return visit(ledger.MintWrite{Pubkey: m.pubkey, Mint: m.mint})
	})
}

// Freezing is a freeze that was sent and may not be done yet.
type Freezing struct {
	shard *Shard
	done  chan struct{}
	job   freeze
}

// Wait returns the frozen copy once the shard took it. It fails with ErrFolded if the version
// was folded before, and with another error if the shard has stopped.
func (f *Freezing) Wait() (*Frozen, error) {
	select {
	case <-f.done:
		return f.job.frozen, f.job.err
	case <-f.shard.done:
		return nil, errors.New("shard stopped before it froze")
	}
}

// Freeze keeps what the shard holds at version v. It takes its turn among the work, so
// shards that are sent it between the same two pieces of work all freeze at one point of the
// log; and it takes the shard no longer than a query does, however much is held.
func (s *Shard) Freeze(v ledger.Version) *Freezing {
	f := &Freezing{shard: s, done: make(chan struct{}, 1), job: freeze{version: v}}
	select {
	case s.work <- order{&f.job, f.done}:
	case <-s.done:
	}
	return f
}

// freeze is the shard's part of it.
type freeze struct {
	version ledger.Version
	frozen  *Frozen
	err     error
}

func (j *freeze) step(s *state) (more bool) {
	if j.version < s.folded {
		j.err = ErrFolded
		return false
	}
	j.frozen = &Frozen{
		version: j.version, over: s.accounts.overlay.freeze(), base: s.accounts.base.Freeze(), mints: s.mints.freeze(),
	}
	return false
}
