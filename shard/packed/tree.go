package packed

import (
	"github.com/tidwall/btree"

	"ledgerd/engine/ledger"
	"ledgerd/shard/arena"
)

// treeDegree makes a leaf fill at most 3 KiB. Of 16, 32, 64 and 128 it measured best for look-ups, memory and
// copies; more a btree.PathHint cannot say.
const treeDegree = 128

// tree lists records in the order of a number, and of their accounts' keys where that is equal. What the
// number says is up to the owner: the beginning of the key, or a group and the beginning of the key. So a
// search reads a record only where numbers are equal. Nodes are shared with the copies that frozen bases
// have ([btree.BTreeG.Copy]) and copied before they are written.
type tree struct {
	records  *arena.Chunks[record] // which the listings are of
	listings *btree.BTreeG[listing]
	hint     btree.PathHint // of the last call of first
}

// listing is one entry of a tree: a number and a record. It takes 12 bytes and has no pointer.
type listing struct {
	high, low uint32    // halves of the number; in one it would be aligned and a listing take 16 bytes
	ref       arena.Ref // 0 in a search: before all records of that number
}

func listingOf(number uint64, r arena.Ref) listing {
	return listing{uint32(number >> 32), uint32(number), r}
}

func (l listing) number() uint64 { return uint64(l.high)<<32 | uint64(l.low) }

func newTree(records *arena.Chunks[record]) *tree {
	less := func(a, b listing) bool {
		if a.high != b.high {
			return a.high < b.high
		}
		if a.low != b.low {
			return a.low < b.low
		}
		return b.ref != 0 && (a.ref == 0 || records.At(a.ref).key.Compare(&records.At(b.ref).key) < 0)
	}
	return &tree{records: records, listings: btree.NewBTreeGOptions(less, btree.Options{NoLocks: true, Degree: treeDegree})}
}

// get returns the record listed under a number and a key, 0 if there is none.
func (t *tree) get(number uint64, key *ledger.Pubkey) (found arena.Ref) {
	t.listings.Ascend(listingOf(number, 0), func(l listing) bool {
		if l.number() != number {
			return false
		}
		order := t.records.At(l.ref).key.Compare(key)
		if order == 0 {
			found = l.ref
		}
		return order < 0
	})
	return found
}

// first returns the first listing whose number is not below, without a record if there is none. It reads
// no record, and less of the tree where numbers are asked for in their order.
func (t *tree) first(number uint64) (l listing) {
	t.listings.AscendHint(listingOf(number, 0), func(next listing) bool {
		l = next
		return false
	}, &t.hint)
	return l
}

// set lists a record under a number and its account's key, in the place of the one that was listed so.
func (t *tree) set(number uint64, r arena.Ref) { t.listings.Set(listingOf(number, r)) }

// remove takes out what is listed under a number and the key of a record's account.
func (t *tree) remove(number uint64, r arena.Ref) { t.listings.Delete(listingOf(number, r)) }

// ascend calls visit for all that is not below a number and a key, in order, until it returns false.
func (t *tree) ascend(number uint64, key *ledger.Pubkey, visit func(number uint64, r arena.Ref) bool) {
	t.listings.Ascend(listingOf(number, 0), func(l listing) bool {
		n := l.number()
		if n == number && t.records.At(l.ref).key.Compare(key) < 0 {
			return true
		}
		return visit(n, l.ref)
	})
}

// load fills an empty tree with members, which are in the order of their groups and keys.
func (t *tree) load(members []member) {
	for _, m := range members {
		t.listings.Load(listing{m.group, m.start, m.ref})
	}
	Pack(t.listings)
}
