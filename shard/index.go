package shard

import (
	"github.com/tidwall/btree"

	"ledgerd/engine/ledger"
)

// membership is one entry of an index: an account and its group, which is a program or a wallet.
type membership struct {
	group, member ledger.Pubkey
}

// index lists the members of groups that are in the overlay, in pubkey order. It may list
// accounts that have left the group, so readers check each account at their version.
type index struct {
	tree   *btree.BTreeG[membership]
	ofTree shedder
}

func newIndex() *index {
	return &index{tree: btree.NewBTreeGOptions(func(a, b membership) bool {
		if a.group != b.group {
			return a.group.Compare(&b.group) < 0
		}
		return a.member.Compare(&b.member) < 0
	}, btree.Options{NoLocks: true, Degree: degree})}
}

func (x *index) insert(group, member ledger.Pubkey) {
	x.ofTree.writes++
	x.tree.Set(membership{group, member})
}

func (x *index) remove(group, member ledger.Pubkey) {
	x.ofTree.writes++
	x.tree.Delete(membership{group, member})
}

// shed releases the memory of stale nodes.
func (x *index) shed() { shed(&x.ofTree, x.tree) }

// grouping returns the group of an account, if it belongs to one.
type grouping func(*ledger.Account) (group ledger.Pubkey, ok bool)

// byProgram groups accounts by the program that is known to own them.
func byProgram(a *ledger.Account) (ledger.Pubkey, bool) {
	return a.Owner, a.Exists() && a.Known&ledger.FieldOwner != 0
}

// byWallet groups token accounts by their wallet.
func byWallet(a *ledger.Account) (ledger.Pubkey, bool) {
	if !a.Exists() || a.Token == nil {
		return ledger.Pubkey{}, false
	}
	return a.Token.Owner, true
}
