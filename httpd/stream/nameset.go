package stream

import (
	"fmt"

	"github.com/tidwall/btree"

	"ledgerd/engine/ledger"
)

// nameSet are the names that a subscriber has. What a change costs goes with the names that are changed, however many
// there are. A tree is replaced, never changed in place, so copies may share it; nil is an empty one.
type nameSet [nameKinds]*btree.BTreeG[ledger.Pubkey]

func pubkeyLess(a, b ledger.Pubkey) bool { return a.Compare(&b) < 0 }

// len returns how many names of a kind there are.
func (n *nameSet) len(kind nameKind) int {
	if n[kind] == nil {
		return 0
	}
	return n[kind].Len()
}

func (n *nameSet) count() (count int) {
	for kind := range n {
		count += n.len(nameKind(kind))
	}
	return count
}

// counts returns how many names of each kind there are, as fields of an answer: of wallets only with
// withWallets.
func (n *nameSet) counts(withWallets bool) string {
	counts := fmt.Sprintf(`"pubkeys":%d,"programs":%d`, n.len(pubkeys), n.len(programs))
	if withWallets {
		counts += fmt.Sprintf(`,"wallets":%d`, n.len(wallets))
	}
	return counts
}

func (n *nameSet) has(kind nameKind, k *ledger.Pubkey) bool {
	if n[kind] == nil {
		return false
	}
	_, found := n[kind].Get(*k)
	return found
}

// plus returns the names with more of them, and which are new.
func (n nameSet) plus(more names) (all nameSet, added names) {
	for kind, keys := range more {
		added[kind] = n.among(nameKind(kind), keys, false)
		if len(added[kind]) == 0 {
			continue
		}
		if n[kind] == nil {
			n[kind] = btree.NewBTreeGOptions(pubkeyLess, btree.Options{NoLocks: true})
		} else {
			n[kind] = n[kind].Copy()
		}
		for _, k := range added[kind] {
			n[kind].Set(k)
		}
	}
	return n, added
}

// minus returns the names without some, and which of these were there.
func (n nameSet) minus(less names) (left nameSet, removed names) {
	for kind, keys := range less {
		removed[kind] = n.among(nameKind(kind), keys, true)
		if len(removed[kind]) == 0 {
			continue
		}
		n[kind] = n[kind].Copy()
		for _, k := range removed[kind] {
			n[kind].Delete(k)
		}
	}
	return n, removed
}

// among returns those keys that are names of a kind, or those that are none.
func (n *nameSet) among(kind nameKind, keys []ledger.Pubkey, are bool) (found []ledger.Pubkey) {
	for i := range keys {
		if n.has(kind, &keys[i]) == are {
			found = append(found, keys[i])
		}
	}
	return found
}

// lists returns all names.
func (n *nameSet) lists() (all names) {
	for kind, tree := range n {
		if tree != nil {
			all[kind] = tree.Items()
		}
	}
	return all
}
