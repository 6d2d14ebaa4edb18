package shard

import (
	"unsafe"

	"github.com/tidwall/btree"

	"ledgerd/engine/ledger"
	"ledgerd/shard/packed"
)

// degree is the degree of this package's B-trees. 64 measured best
// for both look-ups and memory on the reference machine.
const degree = 64

func newTree[T any](less func(a, b T) bool) *btree.BTreeG[T] {
	return btree.NewBTreeGOptions(less, btree.Options{NoLocks: true, Degree: degree})
}

// treeBytes estimates the memory of a tree with so many entries. Keys that come in random order leave half of the
// nodes' arrays empty.
func treeBytes[T any](entries int) int {
	var entry T
	return entries * int(unsafe.Sizeof(entry)) * 2
}

// membership is one entry of an index: an account and a group that it is in.
type membership struct {
	packed.Group
	member ledger.Pubkey
	values int // how many values of the overlay need the entry
}

// index lists the members of groups that are in the overlay and that the base may not list. It may list
// accounts that have left the group, so readers check each account at their version.
type index struct{ tree *btree.BTreeG[membership] }

func newIndex() index {
	return index{newTree(func(a, b membership) bool {
		if a.Kind != b.Kind {
			return a.Kind < b.Kind
		}
		if c := a.Key.Compare(&b.Key); c != 0 {
			return c < 0
		}
		return a.member.Compare(&b.member) < 0
	})}
}

// sizeBytes estimates the memory of the entries.
func (x index) sizeBytes() int { return treeBytes[membership](x.tree.Len()) }

// insert lists an account for one more value.
func (x index) insert(g packed.Group, member ledger.Pubkey) {
	m := membership{g, member, 1}
	if was, listed := x.tree.Set(m); listed {
		m.values += was.values
		x.tree.Set(m)
	}
}

// remove undoes one insert.
func (x index) remove(g packed.Group, member ledger.Pubkey) {
	if was, _ := x.tree.Delete(membership{Group: g, member: member}); was.values > 1 {
		was.values--
		x.tree.Set(was)
	}
}

// members returns the first keys that are listed under a group after a key, at most limit of them.
func (x index) members(g packed.Group, after ledger.Opt[ledger.Pubkey], limit int) (keys []ledger.Pubkey) {
	x.tree.Ascend(membership{Group: g, member: after.Value}, func(m membership) bool {
		if m.Group != g || len(keys) == limit {
			return false
		}
		if !after.Known || m.member != after.Value {
			keys = append(keys, m.member)
		}
		return true
	})
	return keys
}
