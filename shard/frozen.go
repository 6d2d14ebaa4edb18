package shard

import (
	"fmt"

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

// Freezing is a copy that was queued and that the shard may not have made yet. Its Wait fails with ErrFolded if a newer
// version is folded, and with another error if the shard has stopped.
type Freezing = reply[Frozen]

// Freeze queues a copy of the shard's content at version v. The shard makes the copy in the order of the work, so
// shards that get the request between the same two messages all freeze at the same point of the
// log. A copy takes about as long as a query, however many accounts there are.
func (s *Shard) Freeze(v ledger.Version) *Freezing {
	q := &question[Frozen]{newReply[Frozen](s), v, func(st *state) Frozen {
		return Frozen{v, st.accounts.overlay.freeze(), st.accounts.base.Freeze(), st.mints.freeze()}
	}}
	s.send(q)
	return &q.reply
}

// FreezeAll returns copies of shards, all at one version.
func FreezeAll(shards []*Shard, v ledger.Version) (frozen []*Frozen, err error) {
	sent := make([]*Freezing, len(shards))
	for i, s := range shards {
		sent[i] = s.Freeze(v)
	}
	for _, f := range sent {
		got, failure := f.Wait()
		if failure != nil {
			err = fmt.Errorf("cannot copy the shards: %w", failure)
			continue
		}
		frozen = append(frozen, got)
	}
	if err != nil {
		ReleaseAll(frozen)
	}
	return frozen, err
}

// ReleaseAll releases what copies pin in the shards.
func ReleaseAll(frozen []*Frozen) {
	for _, f := range frozen {
		f.Release()
	}
}

// Release lets the shard reuse the pinned records, and frees what only the copy refers to. The copy must not be walked any
// more; it may be released again. A copy that is dropped without Release is released when the garbage collector finds it.
func (f *Frozen) Release() {
	if f.base != nil {
		f.base.Release()
	}
	f.over, f.base, f.mints = nil, nil, nil
}

// Mints calls visit for the facts of every mint in pubkey order until it returns false.
func (f *Frozen) Mints(visit func(ledger.MintWrite) bool) {
	f.mints.scan(f.version, func(m *mintFacts) bool {
		return visit(ledger.MintWrite{Pubkey: m.pubkey, Mint: m.mint})
	})
}

// Accounts calls visit for every account in pubkey order, tombstones included, until it
// returns false. The account passed to visit is valid until visit returns.
func (f *Frozen) Accounts(visit func(*ledger.Account) bool) {
	var a ledger.Account
	over := f.over.inOrder(0, f.version)
	next, more := over.next()
	visitNext := func() (goOn bool) {
		value := f.over.account(next.at, &a)
		next, more = over.next()
		return value == nil || visit(value)
	}
	for key, r := range f.base.Ascend {
		order := -1 // of the overlay's last key to the base's
		for more && order < 0 {
			if order = next.key.Compare(key); order <= 0 && !visitNext() {
				return
			}
		}
		if order == 0 {
			continue
		}
		if f.base.Unpack(r, &a); !visit(&a) {
			return
		}
	}
	for more && visitNext() {
	}
}
