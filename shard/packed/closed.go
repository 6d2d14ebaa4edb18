package packed

import (
	"ledgerd/engine/ledger"
	"ledgerd/shard/arena"
)

// closed is an account that was closed. They are in a tree, the oldest slot first. A queue would not do: folding finds tombstones
// only nearly in the order of their slots, and one of an old slot may be folded late.
type closed struct {
	slot ledger.Slot // where it was closed
	key  ledger.Pubkey
}

func (t closed) before(u closed) bool {
	if t.slot != u.slot {
		return t.slot < u.slot
	}
	return t.key.Compare(&u.key) < 0
}

// noteClosed notes an account if it is closed.
func (b *Base) noteClosed(a *ledger.Account) {
	if !a.Exists() {
		b.closed.Set(closed{a.Since.Slot(), a.Pubkey})
	}
}

// NextClosed takes out what was noted first of an account that was closed below a horizon. It returns the record of the account, 0 if the
// account was opened or closed again since. noted is false if nothing of below the horizon is noted.
func (b *Base) NextClosed(horizon ledger.Slot) (r arena.Ref, noted bool) {
	oldest, noted := b.closed.Min()
	if !noted || oldest.slot >= horizon {
		return 0, false
	}
	b.closed.PopMin()
	if r = b.Get(&oldest.key); r != 0 {
		if p := b.store.records.At(r); p.exists() || ledger.Provenance(p.lamports).Slot() != oldest.slot {
			r = 0
		}
	}
	return r, true
}

// Closed returns how many times closed accounts are noted: in a base that was loaded, how many there are.
func (b *Base) Closed() int { return b.closed.Len() }
