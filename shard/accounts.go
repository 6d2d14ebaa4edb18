package shard

import (
	"github.com/tidwall/btree"

	"ledgerd/engine/ledger"
	"ledgerd/shard/arena"
	"ledgerd/shard/packed"
)

// accounts is the versioned map of accounts: an overlay above a packed base, and what lists the
// members of programs and wallets in both. Who holds the shard's lock uses it.
type accounts struct {
	overlay  *versions
	base     *packed.Base
	programs *index // of the overlay: program → accounts
	holders  *index // of the overlay: wallet → token accounts

	// overlayOnly are the keys that the overlay has and the base has not, in order.
	overlayOnly   *btree.BTreeG[ledger.Pubkey]
	ofOverlayOnly shedder

	slab    packed.Slab    // of the accounts that are unpacked to live on
	brief   packed.Slab    // of those that are not
	folding ledger.Account // what goes into the base
	touched uint64         // a sink that keeps prefetch loads alive

	gathered []arena.Ref // room for the records of a page
	ahead    ahead       // the keys that a block goes on with
}

func newAccounts() *accounts {
	return &accounts{
		overlay:  new(versions),
		base:     packed.New(),
		programs: newIndex(), holders: newIndex(),
		overlayOnly: btree.NewBTreeGOptions(func(a, b ledger.Pubkey) bool { return a.Compare(&b) < 0 },
			btree.Options{NoLocks: true, Degree: degree}),
		brief:    packed.Slab{Reused: true},
		gathered: make([]arena.Ref, 0, pageKeys+1),
	}
}

// found is where a key is, until that is written or something is folded.
type found struct {
	place
	base arena.Ref // the record, 0 if there is none; where the overlay has the key, nobody looked
}

// find looks a key up in both layers.
func (t *accounts) find(key *ledger.Pubkey) (f found) {
	if f.place = t.overlay.find(key); f.head == 0 {
		f.base = t.base.Get(key)
	}
	return f
}

// newest unpacks the account at its newest version into the room given and returns it, nil if
// nothing is held. What it points at is good until the next is.
func (t *accounts) newest(f found, into *ledger.Account) *ledger.Account {
	switch {
	case f.head != 0:
		w := t.overlay.written.at(f.head)
		if w.absent {
			return nil
		}
		t.overlay.unpack(w, into)
	case f.base != 0:
		t.base.Unpack(f.base, into, &t.brief)
	default:
		return nil
	}
	return into
}

// read unpacks the account of key at version v into the room given and returns it, nil if
// nothing is held. What it points at is never changed.
func (t *accounts) read(key *ledger.Pubkey, v ledger.Version, into *ledger.Account) *ledger.Account {
	if over := t.over(key, v); over != nil {
		if over.absent {
			return nil
		}
		t.overlay.unpack(over, into)
		return into
	}
	r := t.base.Get(key)
	if r == 0 {
		return nil
	}
	t.base.Unpack(r, into, &t.slab)
	return into
}

// readShown makes into the account of key at version v without what it would point at, and
// reports whether anything is held. It allocates nothing and changes nothing.
func (t *accounts) readShown(key *ledger.Pubkey, v ledger.Version, into *ledger.Account) bool {
	if over := t.over(key, v); over != nil {
		if !over.absent {
			over.unpackShown(into)
		}
		return !over.absent
	}
	r := t.base.Get(key)
	if r != 0 {
		t.base.UnpackShown(r, into)
	}
	return r != 0
}

// over returns what the overlay says of key at version v, nil if that is not for it to say.
func (t *accounts) over(key *ledger.Pubkey, v ledger.Version) *written {
	if t.overlay.Len() == 0 {
		return nil
	}
	if p := t.overlay.seen(t.overlay.find(key).head, v); p != 0 {
		return t.overlay.written.at(p)
	}
	return nil
}

// term returns what the newest account of a key is in the state hash: a, nil for none. The
// overlay may know.
func (t *accounts) term(f found, a *ledger.Account) ledger.StateHash {
	if f.head != 0 {
		if w := t.overlay.written.at(f.head); w.termed {
			return w.term
		}
	}
	return a.StateTerm()
}

// write puts an account as of version v, nil for none, where its key was found; before is
// what was held until then.
func (t *accounts) write(f found, v ledger.Version, key *ledger.Pubkey, before, after *ledger.Account) (w *written) {
	w, older := t.overlay.add(f.place, v, key)
	t.overlay.put(w, after)
	if older == nil {
		w.base, older = f.base, &written{}
		if f.base == 0 {
			t.ofOverlayOnly.writes++
			t.overlayOnly.Set(*key)
		}
	}
	w.byProgram = t.enlist(t.programs, byProgram, before, after, older.byProgram)
	w.byWallet = t.enlist(t.holders, byWallet, before, after, older.byWallet)
	return w
}

// enlist makes an account findable under its new group and reports whether the overlay lists it
// there, as it did the account before if listed. What it was before stays findable until
// no version that can still be read supports it.
func (t *accounts) enlist(x *index, of grouping, before, after *ledger.Account, listed bool) bool {
	if after == nil {
		return false
	}
	is, has := of(after)
	if !has {
		return false
	}
	if before != nil {
		// As it did not change, the overlay lists it already or the base does; and the base goes on
		// to for as long as it is not folded up to a version of another group.
		if was, had := of(before); had && was == is {
			return listed
		}
	}
	x.insert(is, after.Pubkey)
	return true
}

// ascend calls visit, in key order, for every account at version v whose key is not below from,
// until it returns false. An account is good until visit returns.
func (t *accounts) ascend(from *ledger.Pubkey, v ledger.Version, visit func(*ledger.Account) bool) {
	var a ledger.Account
	// see visits the account of a key, whose record is r.
	see := func(key *ledger.Pubkey, r arena.Ref) bool {
		over := t.over(key, v)
		switch {
		case over != nil && over.absent:
			return true
		case over != nil:
			t.overlay.unpack(over, &a)
		case r != 0:
			t.base.Unpack(r, &a, &t.brief)
		default:
			return true // it came after v
		}
		return visit(&a)
	}
	only := t.overlayOnly.Iter()
	defer only.Release()
	more, stopped := only.Seek(*from), false
	t.base.Ascend(from, func(key *ledger.Pubkey, r arena.Ref) bool {
		for more {
			if next := only.Item(); next.Compare(key) > 0 {
				break
			} else if stopped = !see(&next, 0); stopped {
				return false
			}
			more = only.Next()
		}
		stopped = !see(key, r)
		return !stopped
	})
	for ; more && !stopped; more = only.Next() {
		next := only.Item()
		stopped = !see(&next, 0)
	}
}

// shed releases the memory of stale nodes and of retired records.
func (t *accounts) shed() {
	shed(&t.ofOverlayOnly, t.overlayOnly)
	t.programs.shed()
	t.holders.shed()
	t.base.Reclaim(shedAfter)
}

// kept returns a copy of an account that lives on.
func kept(a *ledger.Account) ledger.Account {
	c := *a
	if a.Token != nil {
		t := *a.Token
		c.Token = &t
	}
	if a.FieldProvenance != nil {
		e := *a.FieldProvenance
		c.FieldProvenance = &e
	}
	return c
}

// same reports whether two accounts are alike in all there is to them.
func same(a, b *ledger.Account) bool {
	if (a.Token == nil) != (b.Token == nil) || (a.FieldProvenance == nil) != (b.FieldProvenance == nil) {
		return false
	}
	if a.Token != nil && *a.Token != *b.Token || a.FieldProvenance != nil && *a.FieldProvenance != *b.FieldProvenance {
		return false
	}
	x, y := *a, *b
	x.Token, y.Token, x.FieldProvenance, y.FieldProvenance = nil, nil, nil, nil
	return x == y
}
