package shard

import (
	"errors"

	"ledgerd/engine/ledger"
	"ledgerd/shard/packed"
)

// Frozen is the content of a shard at one version, for a snapshot to walk while the shard goes
// on. It does not change whatever the shard does, and pins its records until it is released.
// Only one goroutine at a time may walk it.
type Frozen struct {
	version ledger.Version
	over    *versions
	base    *packed.Frozen
	mints   *mints
}

// Release lets the shard reuse the pinned records. The copy must not be walked any more. A copy that is
// dropped without Release is released when the garbage collector finds it.
func (f *Frozen) Release() { f.base.Release() }

// Accounts calls visit for every account in pubkey order, tombstones included, until it
// returns false. The account passed to visit is valid until visit returns.
func (f *Frozen) Accounts(visit func(*ledger.Account) bool) {
	ascendFrozen(f.base, f.over, f.version, visit)
}

// Mints calls visit for the facts of every mint in pubkey order until it returns false.
func (f *Frozen) Mints(visit func(ledger.MintWrite) bool) {
	f.mints.ascend(&ledger.Pubkey{}, f.version, func(m *mintFacts) bool {
		return visit(ledger.MintWrite{Pubkey: m.pubkey, Mint: m.mint})
	})
}

// Freezing is a freeze that was queued and may not be done yet.
type Freezing struct {
	shard *Shard
	done  chan struct{}
	job   freeze
}

// Wait blocks until the shard has made the copy and returns it. It fails with ErrFolded if a newer version
// is folded, and with another error if the shard has stopped.
func (f *Freezing) Wait() (*Frozen, error) {
	select {
	case <-f.done:
		return f.job.frozen, f.job.err
	case <-f.shard.done:
		return nil, errors.New("shard stopped before it froze")
	}
}

// Freeze queues a copy of the shard's content at version v. It is done in the order of the work, so
// shards that get it between the same two jobs all freeze at the same point of the
// log. It takes about as long as a query, however many accounts there are.
func (s *Shard) Freeze(v ledger.Version) *Freezing {
	f := &Freezing{shard: s, done: make(chan struct{}, 1), job: freeze{version: v}}
	select {
	case s.work <- order{&f.job, f.done}:
	case <-s.done:
	}
	return f
}

// freeze is the job of Freeze.
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
