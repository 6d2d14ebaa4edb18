package packed

import (
	"unsafe"

	"github.com/tidwall/btree"

	"ledgerd/engine/ledger"
	"ledgerd/shard/arena"
)

// Base is the accounts at one version, and the lists of their groups.
type Base struct {
	store       recordStore
	byKey       *tree        // all accounts, tombstones included
	lists       [Kinds]*tree // the list of programs is exact; in the others, groups with the same hash are one
	listedKinds Kind         // groups of the kinds below it are listed
	closed      *btree.BTreeG[closed]
	pins        pins
	room        room // for Unpack
	former      room // for Put and Drop
}

// New returns an empty base that lists the groups of the kinds below kinds: with Kinds all groups, with ByMint all but those
// of mints.
func New(kinds Kind) *Base {
	b := &Base{listedKinds: kinds, closed: btree.NewBTreeGOptions(closed.before, btree.Options{NoLocks: true})}
	b.byKey = newTree(&b.store.records)
	for k := range b.lists {
		b.lists[k] = newTree(&b.store.records)
	}
	return b
}

// ListedKinds returns the kind below which groups are listed, as given to New.
func (b *Base) ListedKinds() Kind { return b.listedKinds }

// Get returns the record of an account, 0 if there is none.
func (b *Base) Get(key *ledger.Pubkey) arena.Ref { return b.byKey.get(key.Prefix(), key) }

// Any returns the record of an account with the key or, if there is none, of an account with the same first 8 bytes; 0 if
// there is none either. It reads no record. It is faster for ascending keys.
func (b *Base) Any(key *ledger.Pubkey) arena.Ref { return b.byKey.any(key.Prefix()) }

// Key returns the key of the account of a record.
func (b *Base) Key(r arena.Ref) *ledger.Pubkey { return &b.store.records.At(r).key }

// Unpack sets a to the account of a record. What a points at is valid until the next call.
func (b *Base) Unpack(r arena.Ref, a *ledger.Account) { b.store.unpack(r, a, &b.room) }

// UnpackCopy is Unpack for a caller that keeps the account: it owns what a points at, except for the data, which is shared and
// never changes. Several goroutines may call it at once.
func (b *Base) UnpackCopy(r arena.Ref, a *ledger.Account) {
	var to *room
	if b.store.records.At(r).meta&(flagToken|flagExtra) != 0 {
		to = new(room)
	}
	b.store.unpack(r, a, to)
}

// UnpackShallow sets a to the account of a record without Token, Data and FieldProvenance. Several goroutines may call it at once.
func (b *Base) UnpackShallow(r arena.Ref, a *ledger.Account) { b.store.unpackShallow(r, a) }

// Load reads a record, 0 for none, into the caches of the processor; LoadHolding reads its holding. The results mean nothing,
// but the caller must use them: else the reads are optimized away.
func (b *Base) Load(r arena.Ref) uint64 {
	if r == 0 {
		return 0
	}
	p := b.store.records.At(r)
	return uint64(p.key[0]) + uint64(p.more)
}

// LoadHolding is described at Load.
func (b *Base) LoadHolding(r arena.Ref) uint64 {
	if r == 0 || b.store.records.At(r).meta&flagToken == 0 {
		return 0
	}
	return b.store.holdings.At(b.store.records.At(r).more).amount
}

// Len returns how many accounts there are, tombstones included.
func (b *Base) Len() int { return b.byKey.listings.Len() }

// TokenAccounts returns how many accounts are token accounts.
func (b *Base) TokenAccounts() int { return b.lists[ByWallet].listings.Len() }

// SizeBytes estimates how much memory the base takes. It counts each entry of a list twice, because keys that come in random
// order leave half of the nodes' arrays empty.
func (b *Base) SizeBytes() int {
	listed := b.byKey.listings.Len()
	for _, list := range b.lists {
		listed += list.listings.Len()
	}
	return b.store.sizeBytes() + 2*listed*int(unsafe.Sizeof(listing{})) + 2*b.closed.Len()*int(unsafe.Sizeof(closed{}))
}

// Put stores an account whose record is r, 0 if it has none yet, and returns its record,
// which may be another one.
func (b *Base) Put(r arena.Ref, a *ledger.Account) (now arena.Ref) {
	b.Reclaim(2)
	b.noteClosed(a)
	if r != 0 && !b.pins.shared(r) && b.store.sameGroups(r, a, b.listedKinds) {
		b.store.write(r, a)
		return r
	}
	before := b.listed(r)
	if now = r; r == 0 || b.pins.shared(r) {
		now = b.store.put(a)
		b.pins.made(now)
	} else {
		b.store.write(r, a)
	}
	b.relist(r, before, now, b.numbersOf(a))
	if r != 0 && r != now {
		b.pins.retire(r)
	}
	return now
}

// listed returns the numbers under which a record, 0 for none, is listed.
func (b *Base) listed(r arena.Ref) numbers {
	if r == 0 {
		return numbers{}
	}
	var a ledger.Account
	b.store.unpack(r, &a, &b.former)
	return b.numbersOf(&a)
}

// relist replaces the entries of an account in the lists, which were those of record r with the numbers before, by those
// of record now, 0 for none, with the numbers after.
func (b *Base) relist(r arena.Ref, before numbers, now arena.Ref, after numbers) {
	switch {
	case now == 0:
		b.byKey.remove(b.Key(r).Prefix(), r)
	case now != r:
		b.byKey.set(b.Key(now).Prefix(), now)
	}
	for k, list := range b.lists {
		if before[k].Known && before[k] != after[k] {
			list.remove(before[k].Value, r)
		}
		if after[k].Known && (before[k] != after[k] || r != now) {
			list.set(after[k].Value, now)
		}
	}
}

// Drop removes the account of a record.
func (b *Base) Drop(r arena.Ref) {
	b.Reclaim(2)
	b.relist(r, b.listed(r), 0, numbers{})
	if b.pins.shared(r) {
		b.pins.retire(r)
	} else {
		b.store.free(r)
	}
}

// Pinned reports whether a frozen copy may still be read.
func (b *Base) Pinned() bool { return b.pins.pinned() }

// Retired returns how many records are retired and not yet free.
func (b *Base) Retired() int { return len(b.pins.retired) }

// Reclaim frees at most most retired records that no frozen copy can read any more.
func (b *Base) Reclaim(most int) { b.pins.reclaim(most, b.store.free) }
