package packed

import (
	"ledgerd/engine/ledger"
	"ledgerd/shard/arena"
)

// Base is the accounts at one version, and the indexes of their programs and wallets.
type Base struct {
	store   recordStore
	byKey   *tree
	indexes [indexes]*tree
	pins    pins
	room    room // for Unpack
	former  room // for groups
}

// The indexes. That of programs is exact; that of wallets groups wallets with the same hash.
const (
	byProgram = iota
	byWallet
	indexes
)

// New returns an empty base.
func New() *Base {
	b := new(Base)
	records := &b.store.records
	b.byKey, b.indexes = newTree(records), [indexes]*tree{newTree(records), newTree(records)}
	return b
}

// groups are the groups under which the indexes list an account.
type groups [indexes]ledger.Opt[uint32]

// groupsOf returns the groups of account a, whose record is r. That of its program is the number of the program's key.
func (b *Base) groupsOf(r arena.Ref, a *ledger.Account) (g groups) {
	if a.Program() != nil {
		g[byProgram] = ledger.Some(uint32(b.store.records.At(r).owner))
	}
	if wallet := a.Wallet(); wallet != nil {
		g[byWallet] = ledger.Some(walletGroup(wallet))
	}
	return g
}

// groups returns the groups of the account of a record.
func (b *Base) groups(r arena.Ref) groups {
	var a ledger.Account
	b.store.unpack(r, &a, &b.former)
	return b.groupsOf(r, &a)
}

// walletGroup returns the group of a wallet: 32 bits of its hash, which a few wallets share.
func walletGroup(wallet *ledger.Pubkey) uint32 { return arena.HashOf(wallet) }

// grouped returns the number under which an index lists a member: its group and then the first 4 bytes of
// its key, so that the members of a group are in the order of keys.
func grouped(group uint32, member *ledger.Pubkey) uint64 {
	return uint64(group)<<32 | member.Prefix()>>32
}

// Get returns the record of an account, 0 if there is none.
func (b *Base) Get(key *ledger.Pubkey) arena.Ref { return b.byKey.get(key.Prefix(), key) }

// Any returns the record of an account with the key or, if there is none, with its first 8 bytes; 0 if there is none. It reads no
// record. Ascending keys make it faster.
func (b *Base) Any(key *ledger.Pubkey) arena.Ref { return b.byKey.any(key.Prefix()) }

// Key returns the key of the account of a record.
func (b *Base) Key(r arena.Ref) *ledger.Pubkey { return &b.store.records.At(r).key }

// Unpack sets a to the account of a record. What a points at is valid until the next call.
func (b *Base) Unpack(r arena.Ref, a *ledger.Account) { b.store.unpack(r, a, &b.room) }

// UnpackShallow sets a to the account of a record without Token and FieldProvenance. Several goroutines may call it at once.
func (b *Base) UnpackShallow(r arena.Ref, a *ledger.Account) { b.store.unpackShallow(r, a) }

// Load reads a record, 0 for none, and its holding into the caches of the processor. The caller must use the result, which means
// nothing: else the reads are optimized away.
func (b *Base) Load(r arena.Ref) (read uint64) {
	if r == 0 {
		return 0
	}
	p := b.store.records.At(r)
	if p.meta&flagToken != 0 {
		read = b.store.holdings.At(p.more).amount
	}
	return read + uint64(p.key[0])
}

// Len returns how many accounts there are, tombstones included.
func (b *Base) Len() int { return b.byKey.listings.Len() }

// Ascend calls visit for the records of all accounts from a key on, in key order, until it returns false.
func (b *Base) Ascend(from *ledger.Pubkey, visit func(key *ledger.Pubkey, r arena.Ref) bool) {
	b.byKey.ascend(from.Prefix(), from, func(_ uint64, r arena.Ref) bool { return visit(b.Key(r), r) })
}

// Members appends to refs the records of at most most accounts of a program, or token accounts of a wallet,
// past a key, in key order. They include accounts of other wallets with the same hash.
func (b *Base) Members(refs []arena.Ref, group *ledger.Pubkey, ofWallet bool, after ledger.Opt[ledger.Pubkey], most int) []arena.Ref {
	index, number := b.indexes[byWallet], walletGroup(group)
	if !ofWallet {
		name := b.store.keys.Find(group)
		if name == 0 {
			return refs
		}
		index, number = b.indexes[byProgram], uint32(name)
	}
	from, begun := after.Value, len(refs)
	index.ascend(grouped(number, &from), &from, func(at uint64, r arena.Ref) bool {
		if uint32(at>>32) != number {
			return false
		}
		if after.Known && len(refs) == begun && *b.Key(r) == after.Value {
			return true
		}
		refs = append(refs, r)
		return len(refs)-begun < most
	})
	return refs
}

// Put stores an account whose record is r, 0 if it has none yet, and returns its record,
// which may be another one.
func (b *Base) Put(r arena.Ref, a *ledger.Account) (now arena.Ref) {
	b.Reclaim(2)
	if r != 0 && !b.pins.shared(r) && b.store.sameGroups(r, a) {
		b.store.write(r, a)
		return r
	}
	var before groups
	if r != 0 {
		before = b.groups(r)
	}
	if now = r; r == 0 || b.pins.shared(r) {
		now = b.store.put(a)
		b.pins.made(now)
		b.byKey.set(a.Pubkey.Prefix(), now)
	} else {
		b.store.write(r, a)
	}
	b.relist(r, before, now, b.groupsOf(now, a))
	if r != 0 && r != now {
		b.pins.retire(r)
	}
	return now
}

// relist replaces the entries of an account in the indexes, which were those of record r with the groups before, by those
// of record now with the groups after.
func (b *Base) relist(r arena.Ref, before groups, now arena.Ref, after groups) {
	for i, index := range b.indexes {
		if before[i].Known && before[i] != after[i] {
			index.remove(grouped(before[i].Value, b.Key(r)), r)
		}
		if after[i].Known && (before[i] != after[i] || r != now) {
			index.set(grouped(after[i].Value, b.Key(now)), now)
		}
	}
}

// ClosedAt reports whether an account is a tombstone of the given slot.
func (b *Base) ClosedAt(key *ledger.Pubkey, slot ledger.Slot) bool {
	r := b.Get(key)
	if r == 0 {
		return false
	}
	p := b.store.records.At(r)
	return !p.exists() && ledger.Provenance(p.lamports).Slot() == slot
}

// Drop removes the account of a record.
func (b *Base) Drop(r arena.Ref) {
	b.Reclaim(2)
	b.relist(r, b.groups(r), 0, groups{})
	b.byKey.remove(b.Key(r).Prefix(), r)
	if b.pins.shared(r) {
		b.pins.retire(r)
	} else {
		b.store.free(r)
	}
}

// Retired returns how many records are retired and not yet free.
func (b *Base) Retired() int { return len(b.pins.retired) }

// Reclaim frees at most most retired records that no frozen copy can read any more.
func (b *Base) Reclaim(most int) { b.pins.reclaim(most, b.store.free) }
