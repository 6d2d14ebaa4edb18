package packed

import (
	"ledgerd/engine/ledger"
	"ledgerd/shard/arena"
)

// Base is the accounts at one version, and the indexes of their programs and wallets. The index of programs
// is exact; that of wallets groups wallets with the same hash.
type Base struct {
	store    *recordStore
	byKey    *tree
	programs *tree
	wallets  *tree
	pins     pins
}

// New returns an empty base.
func New() *Base {
	b := &Base{store: new(recordStore)}
	records := &b.store.records
	b.byKey, b.programs, b.wallets = newTree(records), newTree(records), newTree(records)
	return b
}

// grouped returns the number under which an index lists a member: its group and then the first 4 bytes of
// its key, so that the members of a group are in the order of keys.
func grouped(group uint32, member *ledger.Pubkey) uint64 {
	return uint64(group)<<32 | member.Prefix()>>32
}

// walletGroup returns the group of a wallet: 32 bits of its hash, which a few wallets share.
func walletGroup(wallet *ledger.Pubkey) uint32 { return arena.HashOf(wallet) }

// Get returns the record of an account, 0 if there is none.
func (b *Base) Get(key *ledger.Pubkey) arena.Ref { return b.byKey.get(key.Prefix(), key) }

// wallet returns the wallet that a live token account belongs to.
func (v *view) wallet(r arena.Ref) (*ledger.Pubkey, bool) {
	if p := v.records.At(r); p.meta&flagToken != 0 && p.exists() {
		return &v.holdings.At(p.more).wallet, true
	}
	return nil, false
}

// Wallet returns the wallet that the account of a record belongs to, if it is a live token account.
func (b *Base) Wallet(r arena.Ref) (*ledger.Pubkey, bool) { return b.store.wallet(r) }

// Key returns the key of the account of a record.
func (b *Base) Key(r arena.Ref) *ledger.Pubkey { return &b.store.records.At(r).key }

// Unpack sets a to the account of a record. What a points at is allocated from dst.
func (b *Base) Unpack(r arena.Ref, a *ledger.Account, dst *Slab) { b.store.unpack(r, a, dst) }

// UnpackShallow is Unpack without Token and FieldProvenance.
func (b *Base) UnpackShallow(r arena.Ref, a *ledger.Account) { b.store.unpackShallow(r, a) }

// Prefetch loads a record into the caches of the processor. The caller must use the result, which has no
// meaning, so that the load is not optimized away.
func (b *Base) Prefetch(r arena.Ref) uint64 { return b.store.records.At(r).meta }

// Len returns how many accounts there are, tombstones included.
func (b *Base) Len() int { return b.byKey.listings.Len() }

// Ascend calls visit for the records of all accounts from a key on, in key order, until it returns false.
func (b *Base) Ascend(from *ledger.Pubkey, visit func(key *ledger.Pubkey, r arena.Ref) bool) {
	b.byKey.ascend(from.Prefix(), from, func(_ uint64, r arena.Ref) bool { return visit(b.Key(r), r) })
}

// Members appends to refs the records of at most most accounts of a program, or token accounts of a wallet,
// past a key, in key order. They include accounts of other wallets with the same hash.
func (b *Base) Members(refs []arena.Ref, group *ledger.Pubkey, byWallet bool, after ledger.Opt[ledger.Pubkey], most int) []arena.Ref {
	listed, number := b.programs, uint32(0)
	if byWallet {
		listed, number = b.wallets, walletGroup(group)
	} else {
		name, held := b.store.keys.Find(group)
		if !held {
			return refs
		}
		number = uint32(name)
	}
	from, begun := after.Value, len(refs)
	listed.ascend(grouped(number, &from), &from, func(at uint64, r arena.Ref) bool {
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
	key := &a.Pubkey
	if r == 0 {
		r = b.make(a)
		b.byKey.set(key.Prefix(), r)
		b.list(r)
		return r
	}
	program, ofProgram := b.store.records.At(r).program()
	wallet, ofWallet := b.store.wallet(r)
	sameProgram := ofProgram && a.Exists() && a.Known&ledger.FieldOwner != 0 && b.store.owns(program, &a.Owner)
	sameWallet := ofWallet && a.Exists() && a.Token != nil && *wallet == a.Token.Owner
	if ofProgram && !sameProgram {
		b.programs.remove(grouped(uint32(program), key), r)
	}
	if ofWallet && !sameWallet {
		b.wallets.remove(grouped(walletGroup(wallet), key), r)
	}
	now = r
	if b.pins.shared(r) {
		now = b.make(a)
		b.byKey.set(key.Prefix(), now)
		b.pins.retire(r)
	} else {
		b.store.write(r, a)
	}
	if now != r || !sameProgram {
		b.listByProgram(now)
	}
	if now != r || !sameWallet {
		b.listByWallet(now)
	}
	return now
}

// owns reports whether program is the number of key.
func (v *recordStore) owns(program arena.Ref, key *ledger.Pubkey) bool {
	if program == 0 {
		return *key == (ledger.Pubkey{})
	}
	return *v.names.At(program) == *key
}

// list adds a record to the indexes of its program and wallet. It replaces an older record of its account there.
func (b *Base) list(r arena.Ref) {
	b.listByProgram(r)
	b.listByWallet(r)
}

func (b *Base) listByProgram(r arena.Ref) {
	p := b.store.records.At(r)
	if program, ok := p.program(); ok {
		b.programs.set(grouped(uint32(program), &p.key), r)
	}
}

func (b *Base) listByWallet(r arena.Ref) {
	if wallet, ok := b.store.wallet(r); ok {
		key := &b.store.records.At(r).key
		b.wallets.set(grouped(walletGroup(wallet), key), r)
	}
}

// ClosedAt reports whether an account is a tombstone of the given slot.
func (b *Base) ClosedAt(key *ledger.Pubkey, slot ledger.Slot) bool {
	r := b.Get(key)
	if r == 0 || b.store.records.At(r).exists() {
		return false
	}
	return ledger.Provenance(b.store.records.At(r).lamports).Slot() == slot
}

// Remove removes an account if it is stored.
func (b *Base) Remove(key *ledger.Pubkey) {
	if r := b.Get(key); r != 0 {
		b.Drop(r)
	}
}

// Drop removes the account of a record.
func (b *Base) Drop(r arena.Ref) {
	b.Reclaim(2)
	key := &b.store.records.At(r).key
	if program, ok := b.store.records.At(r).program(); ok {
		b.programs.remove(grouped(uint32(program), key), r)
	}
	if wallet, ok := b.store.wallet(r); ok {
		b.wallets.remove(grouped(walletGroup(wallet), key), r)
	}
	b.byKey.remove(key.Prefix(), r)
	if b.pins.shared(r) {
		b.pins.retire(r)
	} else {
		b.store.free(r)
	}
}

// make returns a new record of an account.
func (b *Base) make(a *ledger.Account) arena.Ref {
	r := b.store.put(a)
	b.pins.made(r)
	return r
}

// Reclaim frees at most most retired records that no frozen copy can read any more.
func (b *Base) Reclaim(most int) { b.pins.reclaim(most, b.store.free) }
