package packed

import (
	"math"

	"github.com/tidwall/btree"

	"ledgerd/engine/ledger"
	"ledgerd/shard/arena"
)

// treeDegree limits a leaf to 3 KiB. Of 16, 32, 64 and 128 it measured best for look-ups, memory and
// copies; a btree.PathHint supports no more.
const treeDegree = 128

// tree lists records in the order of a number, and of their accounts' keys where numbers are equal. The
// number is the prefix of the key, or a group and the first 4 bytes of the key. So a
// search reads a record only where numbers are equal. Frozen copies share the nodes
// ([btree.BTreeG.Copy]), and the tree copies a shared node before it writes to it.
type tree struct {
	records  *arena.Pool[record] // the records that are listed
	listings *btree.BTreeG[listing]
	hint     btree.PathHint // where the last call of any ended
}

// listing is one entry of a tree: a number and a record. It takes 12 bytes and has no pointer.
type listing struct {
	high, low uint32    // halves of the number; with a uint64, alignment would make it 16 bytes
	ref       arena.Ref // in a search 0, which sorts before all records of that number, or anyRef
}

// anyRef matches any record of a number in a search. No pool has a record with this reference.
const anyRef = arena.Ref(math.MaxUint32)

func listingOf(number uint64, r arena.Ref) listing {
	return listing{uint32(number >> 32), uint32(number), r}
}

func (l listing) number() uint64 { return uint64(l.high)<<32 | uint64(l.low) }

func newTree(records *arena.Pool[record]) *tree {
	less := func(a, b listing) bool {
		if a.number() != b.number() {
			return a.number() < b.number()
		}
		if a.ref == anyRef || b.ref == anyRef {
			return false
		}
		return b.ref != 0 && (a.ref == 0 || records.At(a.ref).key.Compare(&records.At(b.ref).key) < 0)
	}
	return &tree{records: records, listings: btree.NewBTreeGOptions(less, btree.Options{NoLocks: true, Degree: treeDegree})}
}

// get returns the record listed under a number and a key, 0 if there is none.
func (t *tree) get(number uint64, key *ledger.Pubkey) arena.Ref {
	l, _ := t.listings.Get(listingOf(number, anyRef))
	if l.ref == 0 || t.records.At(l.ref).key == *key {
		return l.ref
	}
	return t.among(number, key)
}

// among is get for a number that several keys have.
func (t *tree) among(number uint64, key *ledger.Pubkey) (found arena.Ref) {
	t.ascend(number, key, func(n uint64, r arena.Ref) bool {
		if n == number && t.records.At(r).key == *key {
			found = r
		}
		return false
	})
	return found
}

// any returns a record listed under a number, 0 if there is none. It reads no record. Ascending numbers make it faster.
func (t *tree) any(number uint64) arena.Ref {
	l, _ := t.listings.GetHint(listingOf(number, anyRef), &t.hint)
	return l.ref
}

// set lists a record under a number and its account's key. It replaces the record listed there.
func (t *tree) set(number uint64, r arena.Ref) { t.listings.Set(listingOf(number, r)) }

// remove removes the record listed under a number and the key of r's account.
func (t *tree) remove(number uint64, r arena.Ref) { t.listings.Delete(listingOf(number, r)) }

// ascend calls visit, in order, for all listings not below a number and a key, until it returns false.
func (t *tree) ascend(number uint64, key *ledger.Pubkey, visit func(number uint64, r arena.Ref) bool) {
	t.listings.Ascend(listingOf(number, 0), func(l listing) bool {
		n := l.number()
		if n == number && t.records.At(l.ref).key.Compare(key) < 0 {
			return true
		}
		return visit(n, l.ref)
	})
}

// load fills an empty tree with listings, which must be in the order of their numbers and keys.
func (t *tree) load(listings []listing) {
	for _, l := range listings {
		t.listings.Load(l)
	}
	t.pack()
}

// pack reduces the memory of a tree that was just loaded in order.
//
// Loading leaves every node half full, with an array twice as long as needed. Copying a node gives it an array of
// the right length. So pack marks all nodes as shared and makes the tree copy each.
func (t *tree) pack() {
	t.listings.Copy()
	t.listings.WalkMut(func([]listing) bool { return true })
}
