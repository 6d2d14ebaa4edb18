package packed

import (
	"ledgerd/engine/ledger"
	"ledgerd/shard/arena"
)

// Kind is a kind of group.
type Kind uint8

const (
	ByProgram  Kind = iota // the accounts that a program is known to own
	ByWallet               // the token accounts of a wallet
	ByDelegate             // the token accounts that somebody else may spend from
	ByMint                 // the token accounts of a mint; not every base lists them
	Kinds
)

// Of returns the key of the group of this kind that an account, nil for none, belongs to; nil if it belongs to none.
func (k Kind) Of(a *ledger.Account) *ledger.Pubkey {
	switch {
	case a == nil:
		return nil
	case k == ByProgram:
		return a.Program()
	case k == ByWallet:
		return a.Wallet()
	case a.Wallet() == nil:
		return nil
	case k == ByMint:
		return &a.Token.Mint
	}
	return delegateIn(&a.Token.Details)
}

// delegateIn returns the delegate in the details of a token account, nil for none.
func delegateIn(d *ledger.Opt[ledger.TokenDetails]) *ledger.Pubkey {
	if !d.Known || !d.Value.Delegate.Known {
		return nil
	}
	return &d.Value.Delegate.Value
}

// Group is a set of accounts that can be listed.
type Group struct {
	Kind
	Key ledger.Pubkey
}

// numbers are the numbers under which a base lists an account, one for each kind of group.
type numbers [Kinds]ledger.Opt[uint64]

// numbersOf returns the numbers of account a.
func (b *Base) numbersOf(a *ledger.Account) (n numbers) {
	for k := range b.listedKinds {
		if key := k.Of(a); key != nil {
			n[k] = ledger.Some(b.number(Group{k, *key}, &a.Pubkey))
		}
	}
	return n
}

// number returns the number under which a member of a group is listed, so that the members are in the order of their keys: 32 bits for
// the group and then the first 4 bytes of the key.
func (b *Base) number(g Group, member *ledger.Pubkey) uint64 {
	group := arena.HashOf(&g.Key) // a few wallets have the same hash
	if g.Kind == ByProgram {
		group = uint32(b.store.keys.Find(&g.Key)) // 0, under which nothing is listed, if no account has the program
	}
	return uint64(group)<<32 | member.Prefix()>>32
}

// Members returns the records of the first accounts of a group after a key, in key order, at most most of them. They include
// accounts of other groups with the same hash.
func (b *Base) Members(g Group, after ledger.Opt[ledger.Pubkey], most int) []arena.Ref {
	refs := make([]arena.Ref, 0, most)
	from := b.number(g, &after.Value)
	b.lists[g.Kind].ascend(from, &after.Value, func(number uint64, r arena.Ref) bool {
		if number>>32 != from>>32 {
			return false
		}
		if !after.Known || *b.Key(r) != after.Value {
			refs = append(refs, r)
		}
		return len(refs) < most
	})
	return refs
}
