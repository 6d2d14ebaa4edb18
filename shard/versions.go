package shard

import (
	"math/bits"
	"sort"

	"ledgerd/engine/ledger"
	"ledgerd/shard/arena"
	"ledgerd/shard/packed"
)

// # The overlay of accounts
//
// The overlay is a queue of written values in the order of their versions. It has no pointers except those to account data,
// so the garbage collector need not scan it: at a million writes a second, some millions of values are not folded.
// A hash table has the position of the newest value of each key, and each value has the position of
// the one before it, so a look-up reads a few cache lines. Folding takes values from the front. Values of one
// version are in the order of their keys.
//
// The overlay has no order of keys across versions. A walk in key order walks the base and merges the
// few keys that only the overlay has ([accounts.page]); a walk of a frozen copy merges its versions ([inOrder]).

// cell is the account of a key from one version on. Only the shard reads and changes older, newer, jump, base
// and listed. The message that adds a value sets everything else, which then never changes and may be read through
// frozen copies.
type cell struct {
	key, owner             ledger.Pubkey
	term                   ledger.StateHash // the account's part of the state hash, stored since hashing takes longer; 0: not known
	lamports               ledger.Lamports
	rentEpoch              uint64
	provenance, since      ledger.Provenance
	version                ledger.Version
	token, fieldProvenance position // in the queues of their kind; 0: none
	data                   position // likewise
	known                  ledger.Fields
	executable, absent     bool               // absent: there is no such account
	listed                 [packed.Kinds]bool // the overlay's index has an entry for this value
	base                   arena.Ref          // the account's record, 0 for none; set in the oldest value of a key
	older, newer, jump     position           // other values of the key; see jump
	depth                  uint32             // how many older values the key had, since the overlay has it
}

// versions is the overlay of accounts.
type versions struct {
	cells            queue[cell]
	tokens           queue[ledger.TokenAccount]
	fieldProvenances queue[ledger.FieldProvenance]
	data             queue[ledger.Data] // the only pointers
	dataBytes        int                // what they point at
	heads            arena.HashTable    // positions of the newest values
}

// location is where a value of a key is: the newest one, or the one visible at a version. It is valid until the key is written
// or a value is folded.
type location struct {
	hash uint32    // of the key
	head position  // of the value in the overlay, 0 for none
	base arena.Ref // the record of the base, 0 for none; not set if the overlay has a value
}

// Len returns how many values there are, of all versions.
func (o *versions) Len() int { return o.cells.count }

// sizeBytes returns how much memory is allocated for the overlay.
func (o *versions) sizeBytes() int {
	return o.cells.sizeBytes() + o.tokens.sizeBytes() + o.fieldProvenances.sizeBytes() + o.data.sizeBytes() + o.dataBytes + o.heads.SizeBytes()
}

// find returns the position of the newest value of a key, 0 for none; if key is nil, of any key with the hash.
func (o *versions) find(hash uint32, key *ledger.Pubkey) position {
	part := o.heads.Part(hash)
	if part.Used == 0 {
		return 0
	}
	for at, mask := part.First(hash); ; at = (at + 1) & mask {
		e := part.Entries[at]
		if e == 0 || uint32(e>>32) == hash && (key == nil || o.cells.at(position(e)).key == *key) {
			return position(e)
		}
	}
}

// visible returns the newest value of a key at or below version v, 0 if the overlay has none.
func (o *versions) visible(hash uint32, key *ledger.Pubkey, v ledger.Version) position {
	for p := o.find(hash, key); o.cells.holds(p); {
		c := o.cells.at(p)
		if c.version <= v {
			return p
		}
		// A jump may lead below v or to a folded value.
		if p = c.older; c.jump != p && o.cells.holds(c.jump) && o.cells.at(c.jump).version > v {
			p = c.jump
		}
	}
	return 0
}

// add adds account a, nil for none, as the value of a key as of version v. l is where the key was found; it is invalid
// afterwards.
func (o *versions) add(l location, v ledger.Version, key *ledger.Pubkey, a *ledger.Account) *cell {
	at, c := o.cells.add()
	c.key, c.version, c.base = *key, v, l.base
	o.set(c, a)
	part := o.heads.Part(l.hash)
	if l.head == 0 {
		part.Add(l.hash, uint32(at))
		return c
	}
	older := o.cells.at(l.head)
	older.newer = at
	c.older, c.depth = l.head, older.depth+1
	c.jump = o.jump(l.head, c.depth)
	part.Replace(l.hash, uint32(l.head), uint32(at))
	return c
}

// jump returns the position that a value of the given depth jumps to, 0 if that is folded: the value whose depth is the
// same without its lowest set bit, as in a Fenwick tree. An old version of a key is then found
// in a logarithmic number of steps.
//
//	depth  8  7  6  5  4  3  2  1  0
//	older  7  6  5  4  3  2  1  0
//	jump   0  6  4  4  0  2  0  0       from 8 to 1: 7, 6, 4, 3, 2, 1
func (o *versions) jump(older position, depth uint32) position {
	to := older
	for range bits.TrailingZeros32(depth) {
		if !o.cells.holds(to) {
			return 0
		}
		to = o.cells.at(to).jump
	}
	return to
}

// drop removes the oldest value, which is c. pinned says whether a frozen copy may still read it.
func (o *versions) drop(c *cell, pinned bool) {
	if c.data != 0 {
		data := o.data.at(c.data)
		o.dataBytes -= data.SizeBytes()
		if !pinned {
			*data = ledger.Data{} // else up to a chunk of data that nobody reads would stay in memory
		}
		o.data.drop()
	}
	if c.token != 0 {
		o.tokens.drop()
	}
	if c.fieldProvenance != 0 {
		o.fieldProvenances.drop()
	}
	o.cells.drop()
}

// upTo returns how many values have a version up to v; they are the oldest.
func (o *versions) upTo(v ledger.Version) int {
	return sort.Search(o.Len(), func(i int) bool { return o.cells.at(o.cells.nth(i)).version > v })
}

// freeze returns a copy of o for another goroutine to walk. It has no hash table.
func (o *versions) freeze() *versions {
	return &versions{cells: o.cells.freeze(), tokens: o.tokens.freeze(), fieldProvenances: o.fieldProvenances.freeze(), data: o.data.freeze()}
}

// set sets c, which is empty, to the account a, nil for none.
func (o *versions) set(c *cell, a *ledger.Account) {
	if a == nil {
		c.absent = true
		return
	}
	c.owner, c.lamports, c.rentEpoch, c.executable = a.Owner, a.Lamports, a.RentEpoch, a.Executable
	c.provenance, c.since, c.known = a.Provenance, a.Since, a.Known
	if a.Token != nil {
		at, t := o.tokens.add()
		c.token, *t = at, *a.Token
	}
	if a.FieldProvenance != nil {
		at, e := o.fieldProvenances.add()
		c.fieldProvenance, *e = at, *a.FieldProvenance
	}
	if a.Data.Len() > 0 {
		at, d := o.data.add()
		c.data, *d = at, a.Data
		o.dataBytes += a.Data.SizeBytes()
	}
}

// account sets a to the account of the value at p and returns a, nil if there is no account. The result points into the
// overlay and is never changed.
func (o *versions) account(p position, a *ledger.Account) *ledger.Account {
	c := o.cells.at(p)
	if c.absent {
		return nil
	}
	*a = ledger.Account{
		Pubkey: c.key, Owner: c.owner, Lamports: c.lamports, RentEpoch: c.rentEpoch, Executable: c.executable,
		Provenance: c.provenance, Since: c.since, Known: c.known,
	}
	if c.token != 0 {
		a.Token = o.tokens.at(c.token)
	}
	if c.fieldProvenance != 0 {
		a.FieldProvenance = o.fieldProvenances.at(c.fieldProvenance)
	}
	if c.data != 0 {
		a.Data = *o.data.at(c.data)
	}
	return a
}
