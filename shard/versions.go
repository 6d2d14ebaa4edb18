package shard

import (
	"math/bits"
	"sort"

	"ledgerd/engine/ledger"
	"ledgerd/shard/arena"
)

// # The overlay of accounts
//
// What blocks write is kept in the order in which it came, as values without pointers: of a
// million writes a second some millions are not folded, and the garbage collector has nothing to
// look at. A hash table leads to the newest value of a key and each value to the one before, so a
// look-up touches a few lines of memory, and folding takes from the front. Values of one
// version are in the order of their keys.
//
// There is no order of keys among all: who walks in that order walks the base, and besides it
// the few keys that only the overlay has ([accounts.ascend]); a frozen copy sorts for itself.

// written is the account of a key from one version on. The links are the owner's alone, all else
// stays as it is.
type written struct {
	key, owner          ledger.Pubkey
	term                ledger.StateHash // of the account, if termed: hashing takes longer than reading it
	lamports            ledger.Lamports
	rentEpoch           uint64
	taught, since       ledger.Provenance
	version             ledger.Version
	token, earlier      position // of what few accounts have, 0 for none
	known               ledger.Fields
	executable, absent  bool // absent: there is no such account
	byProgram, byWallet bool // the overlay's index lists it
	moved               bool // what newer ones say of base may be out of date
	termed              bool
	forgotten           bool      // absent since a block opened it again that the filter does not want
	base                arena.Ref // the account's record, 0 if not known; right where nothing is older
	older, newer, jump  position
	depth               uint32 // how many were written before, counted while the overlay has the key
}

// versions is the overlay of accounts.
type versions struct {
	written  queue[written]
	tokens   queue[ledger.TokenAccount]
	earliers queue[ledger.FieldProvenance]
	heads    arena.HashTable // positions of the newest values
}

// place is where the overlay has a key, or would have it, until that is written or something is folded.
type place struct {
	hash uint32
	at   int      // in its part of heads
	head position // the newest value, 0 if there is none
}

// Len returns how many values there are, of all versions.
func (o *versions) Len() int { return int(o.written.held) }

// find returns the place of a key.
func (o *versions) find(key *ledger.Pubkey) place {
	p := place{hash: arena.HashOf(key)}
	part := o.heads.Part(p.hash)
	if part.Used == 0 {
		return p
	}
	for at, mask := part.First(p.hash); ; at = (at + 1) & mask {
		e := part.Entries[at]
		if e == 0 {
			p.at = at
			return p
		}
		if uint32(e>>32) == p.hash && o.written.at(position(e)).key == *key {
			p.at, p.head = at, position(e)
			return p
		}
	}
}

// seen returns what a read at version v sees from a head on, 0 if that is not for the overlay to say.
func (o *versions) seen(head position, v ledger.Version) position {
	for p := head; o.written.holds(p); {
		w := o.written.at(p)
		if w.version <= v {
			return p
		}
		// The jump may go too far, or to what is folded.
		if p = w.older; w.jump != p && o.written.holds(w.jump) && o.written.at(w.jump).version > v {
			p = w.jump
		}
	}
	return 0
}

// add writes a key as of version v, without saying what; the place is then out of date.
func (o *versions) add(p place, v ledger.Version, key *ledger.Pubkey) (w, older *written) {
	at, w := o.written.add()
	w.key, w.version = *key, v
	part := o.heads.Part(p.hash)
	if p.head != 0 {
		older = o.written.at(p.head)
		older.newer = at
		w.older, w.base, w.depth = p.head, older.base, older.depth+1
		w.jump = o.jump(p.head, w.depth)
		part.Replace(p.at, p.hash, uint32(p.head), uint32(at))
		return w, older
	}
	part.Grow()
	free, mask := part.First(p.hash)
	for part.Entries[free] != 0 {
		free = (free + 1) & mask
	}
	part.Add(free, p.hash, uint32(at))
	return w, nil
}

// jump returns where a value of some depth jumps to, 0 if that is folded: to the one whose depth
// is the same but for the lowest bit that is set. So a key that every block
// writes is found at an old version in some logarithm of steps.
func (o *versions) jump(older position, depth uint32) position {
	to := older
	for range bits.TrailingZeros32(depth) {
		if !o.written.holds(to) {
			return 0
		}
		to = o.written.at(to).jump
	}
	return to
}

// removeHead forgets a key, whose newest value is at p.
func (o *versions) removeHead(p position, key *ledger.Pubkey) {
	hash := arena.HashOf(key)
	part := o.heads.Part(hash)
	want := uint64(hash)<<32 | uint64(p)
	for at, mask := part.First(hash); ; at = (at + 1) & mask {
		switch part.Entries[at] {
		case want:
			part.Remove(at)
			return
		case 0:
			panic("the newest value of a key is not where keys are found")
		}
	}
}

// drop lets go of the oldest value.
func (o *versions) drop(w *written) {
	if w.token != 0 {
		o.tokens.drop()
	}
	if w.earlier != 0 {
		o.earliers.drop()
	}
	o.written.drop()
}

// upTo returns how many values are of versions up to v: they are the oldest.
func (o *versions) upTo(v ledger.Version) int {
	return sort.Search(o.Len(), func(i int) bool { return o.written.at(o.written.nth(i)).version > v })
}

// writtenSince returns the keys written by version first or later, some more than once.
func (o *versions) writtenSince(first ledger.Version) []ledger.Pubkey {
	n := o.upTo(first - 1)
	keys := make([]ledger.Pubkey, 0, o.Len()-n)
	for ; n < o.Len(); n++ {
		keys = append(keys, o.written.at(o.written.nth(n)).key)
	}
	return keys
}

// freeze returns what o holds now, to be walked by another goroutine.
func (o *versions) freeze() *versions {
	return &versions{written: o.written.freeze(), tokens: o.tokens.freeze(), earliers: o.earliers.freeze()}
}

// put makes w the account a, nil for none.
func (o *versions) put(w *written, a *ledger.Account) {
	if a == nil {
		w.absent = true
		return
	}
	w.owner, w.lamports, w.rentEpoch, w.executable = a.Owner, a.Lamports, a.RentEpoch, a.Executable
	w.taught, w.since, w.known = a.Provenance, a.Since, a.Known
	if a.Token != nil {
		at, t := o.tokens.add()
		w.token, *t = at, *a.Token
	}
	if a.FieldProvenance != nil {
		at, e := o.earliers.add()
		w.earlier, *e = at, *a.FieldProvenance
	}
}

// unpack makes a the account that w is. What it points at stays as it is.
func (o *versions) unpack(w *written, a *ledger.Account) {
	w.unpackShown(a)
	if w.token != 0 {
		a.Token = o.tokens.at(w.token)
	}
	if w.earlier != 0 {
		a.FieldProvenance = o.earliers.at(w.earlier)
	}
}

// unpackShown makes a the account that w is, without what it would point at.
func (w *written) unpackShown(a *ledger.Account) {
	*a = ledger.Account{
		Pubkey: w.key, Owner: w.owner, Lamports: w.lamports, RentEpoch: w.rentEpoch, Executable: w.executable,
		Provenance: w.taught, Since: w.since, Known: w.known,
	}
}

// program returns the program that is known to own the account, as byProgram does.
func (w *written) program() (*ledger.Pubkey, bool) {
	return &w.owner, !w.absent && w.lamports != 0 && w.known&ledger.FieldOwner != 0
}

// wallet returns the wallet the account belongs to, as byWallet does.
func (o *versions) wallet(w *written) (*ledger.Pubkey, bool) {
	if w.absent || w.lamports == 0 || w.token == 0 {
		return nil, false
	}
	return &o.tokens.at(w.token).Owner, true
}
