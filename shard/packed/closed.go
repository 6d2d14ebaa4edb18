package packed

import (
	"ledgerd/engine/ledger"
	"ledgerd/shard/arena"
)

// closed notes that an account was closed. The notes are in a tree, the oldest slot first. A queue would not do: folding
// meets tombstones only nearly in the order of their slots, and may fold one of an old slot late.
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

// NextClosed removes the note with the lowest slot if that is below a horizon. It returns the record of the account, 0 if the
// account was opened or closed again since. noted is false if there is no note below the horizon.
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

// Closed returns how many notes there are: in a base that was just loaded, one for each closed account.
func (b *Base) Closed() int { return b.closed.Len() }
