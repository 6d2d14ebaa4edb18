package shard

import (
	"github.com/tidwall/btree"

	"ledgerd/engine/ledger"
	"ledgerd/shard/arena"
	"ledgerd/shard/packed"
)

// accounts is the versioned map of accounts: an overlay above a packed base, with an index of programs and
// one of wallets in each. Shard.mu guards it.
type accounts struct {
	overlay  *versions
	base     *packed.Base
	programs *index // of the overlay: program → accounts
	holders  *index // of the overlay: wallet → token accounts

	// overlayOnly has the keys that are in the overlay and not in the base, in order.
	overlayOnly   *btree.BTreeG[ledger.Pubkey]
	ofOverlayOnly shedder

	slab         packed.Slab    // for accounts that outlive the call that unpacks them
	reusedSlab   packed.Slab    // of those that are not
	folding      ledger.Account // scratch of foldValue
	prefetchSink uint64         // keeps prefetch loads alive

	pageRefs []arena.Ref // scratch of members
	prefetch prefetch    // the keys that a block goes on with
}

func newAccounts() *accounts {
	return &accounts{
		overlay:  new(versions),
		base:     packed.New(),
		programs: newIndex(), holders: newIndex(),
		overlayOnly: btree.NewBTreeGOptions(func(a, b ledger.Pubkey) bool { return a.Compare(&b) < 0 },
			btree.Options{NoLocks: true, Degree: degree}),
		reusedSlab: packed.Slab{Reused: true},
		pageRefs:   make([]arena.Ref, 0, pageKeys+1),
	}
}

// found is where a key is. It is valid until the key is written or something is folded.
type found struct {
	bucket
	base arena.Ref // the record, 0 if there is none; not set if the overlay has the key
}

// find looks a key up in both layers.
func (t *accounts) find(key *ledger.Pubkey) (f found) {
	if f.bucket = t.overlay.find(key); f.head == 0 {
		f.base = t.base.Get(key)
	}
	return f
}

// newest unpacks the newest version of an account into into and returns that, nil if there is none.
// What the account points at is valid until the next call.
func (t *accounts) newest(f found, into *ledger.Account) *ledger.Account {
	switch {
	case f.head != 0:
		w := t.overlay.written.at(f.head)
		if w.absent {
			return nil
		}
		t.overlay.unpack(w, into)
	case f.base != 0:
		t.base.Unpack(f.base, into, &t.reusedSlab)
	default:
		return nil
	}
	return into
}

// read unpacks the account of key at version v into into and returns that, nil if there is none.
// What the account points at is never changed.
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

// readShallow is read without Token and FieldProvenance. It reports whether there is an account, allocates
// nothing and changes nothing.
func (t *accounts) readShallow(key *ledger.Pubkey, v ledger.Version, into *ledger.Account) bool {
	if over := t.over(key, v); over != nil {
		if !over.absent {
			over.unpackShallow(into)
		}
		return !over.absent
	}
	r := t.base.Get(key)
	if r != 0 {
		t.base.UnpackShallow(r, into)
	}
	return r != 0
}

// over returns the overlay's value of key that is visible at version v, nil if there is none and the base decides.
func (t *accounts) over(key *ledger.Pubkey, v ledger.Version) *written {
	if t.overlay.Len() == 0 {
		return nil
	}
	if p := t.overlay.visible(t.overlay.find(key).head, v); p != 0 {
		return t.overlay.written.at(p)
	}
	return nil
}

// term returns the state hash of a, the newest account of the key at f, nil for none. It uses the hash that the overlay
// stored, if there is one.
func (t *accounts) term(f found, a *ledger.Account) ledger.StateHash {
	if f.head != 0 {
		if w := t.overlay.written.at(f.head); w.termed {
			return w.term
		}
	}
	return a.StateTerm()
}

// write adds account after, nil for none, to the overlay as of version v. f is where its key was found, before is
// the account until then.
func (t *accounts) write(f found, v ledger.Version, key *ledger.Pubkey, before, after *ledger.Account) (w *written) {
	w, older := t.overlay.add(f.bucket, v, key)
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

// enlist adds account after to an index of the overlay and reports whether the overlay lists it under its group;
// listed says so of before. The entry of before's group stays until no readable version needs it.
func (t *accounts) enlist(x *index, of grouping, before, after *ledger.Account, listed bool) bool {
	if after == nil {
		return false
	}
	is, has := of(after)
	if !has {
		return false
	}
	if before != nil {
		// The group is unchanged, so the overlay or the base lists it already. The base drops its entry only
		// when it folds a version with another group.
		if was, had := of(before); had && was == is {
			return listed
		}
	}
	x.insert(is, after.Pubkey)
	return true
}

// ascend calls visit, in key order, for every account at version v whose key is not below from,
// until it returns false. The account passed to visit is valid until visit returns.
func (t *accounts) ascend(from *ledger.Pubkey, v ledger.Version, visit func(*ledger.Account) bool) {
	var a ledger.Account
	// visitKey visits the account of a key, whose record is r.
	visitKey := func(key *ledger.Pubkey, r arena.Ref) bool {
		over := t.over(key, v)
		switch {
		case over != nil && over.absent:
			return true
		case over != nil:
			t.overlay.unpack(over, &a)
		case r != 0:
			t.base.Unpack(r, &a, &t.reusedSlab)
		default:
			return true // it was created after v
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
			} else if stopped = !visitKey(&next, 0); stopped {
				return false
			}
			more = only.Next()
		}
		stopped = !visitKey(key, r)
		return !stopped
	})
	for ; more && !stopped; more = only.Next() {
		next := only.Item()
		stopped = !visitKey(&next, 0)
	}
}

// shed releases the memory of stale nodes and reclaims retired records.
func (t *accounts) shed() {
	shed(&t.ofOverlayOnly, t.overlayOnly)
	t.programs.shed()
	t.holders.shed()
	t.base.Reclaim(shedAfter)
}

// clone returns a deep copy of an account.
func clone(a *ledger.Account) ledger.Account {
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

// same reports whether all fields of two accounts are equal.
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
