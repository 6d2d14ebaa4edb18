package shard

import (
	"unsafe"

	"github.com/tidwall/btree"

	"ledgerd/engine/ledger"
)

// degree is of the B-trees of this package. 64 measured best
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

// kind is a kind of group.
type kind uint8

const (
	everyAccount kind = iota // one group of all accounts, tombstones included; its key is zero
	ofProgram                // the accounts that a program is known to own
	ofWallet                 // the token accounts of a wallet
	kinds
)

// of returns the key of the group of this kind that an account, nil for none, belongs to; nil if it belongs to none.
func (k kind) of(a *ledger.Account) *ledger.Pubkey {
	switch {
	case a == nil:
		return nil
	case k == everyAccount:
		return &noKey
	case k == ofProgram:
		return a.Program()
	}
	return a.Wallet()
}

// sameGroup reports whether two keys of groups, nil for none, are equal.
func sameGroup(was, is *ledger.Pubkey) bool {
	return was == is || was != nil && is != nil && *was == *is
}

var noKey ledger.Pubkey

// group is a set of accounts that can be listed.
type group struct {
	kind kind
	key  ledger.Pubkey
}

// membership is one entry of an index: an account and a group that it is in.
type membership struct {
	group
	member ledger.Pubkey
	values int // how many values of the overlay need the entry
}

// index lists the members of groups that are in the overlay and that the base may not list. It may list
// accounts that have left the group, so readers check each account at their version.
type index struct{ tree *btree.BTreeG[membership] }

func newIndex() index {
	return index{newTree(func(a, b membership) bool {
		if a.kind != b.kind {
			return a.kind < b.kind
		}
		if c := a.key.Compare(&b.key); c != 0 {
			return c < 0
		}
		return a.member.Compare(&b.member) < 0
	})}
}

// sizeBytes estimates the memory of the entries.
func (x index) sizeBytes() int { return treeBytes[membership](x.tree.Len()) }

// insert lists an account for one more value.
func (x index) insert(g group, member ledger.Pubkey) {
	m := membership{g, member, 1}
	if was, listed := x.tree.Set(m); listed {
		m.values += was.values
		x.tree.Set(m)
	}
}

// remove undoes one insert.
func (x index) remove(g group, member ledger.Pubkey) {
	if was, _ := x.tree.Delete(membership{group: g, member: member}); was.values > 1 {
		was.values--
		x.tree.Set(was)
	}
}

// members returns the first keys that are listed under a group past a key, at most most.
func (x index) members(g group, after ledger.Opt[ledger.Pubkey], most int) (keys []ledger.Pubkey) {
	x.tree.Ascend(membership{group: g, member: after.Value}, func(m membership) bool {
		if m.group != g || len(keys) == most {
			return false
		}
		if !after.Known || m.member != after.Value {
			keys = append(keys, m.member)
		}
		return true
	})
	return keys
}
