package packed

import (
	"cmp"
	"slices"

	"ledgerd/engine/ledger"
)

// loader fills an empty base with accounts in key order and builds the indexes at the end.
type loader struct {
	base    *Base
	members [Kinds][]listing // future entries of the lists of groups
}

// Loader returns a loader for about size accounts.
func (b *Base) Loader(size int) *loader {
	l := &loader{base: b}
	l.members[ByProgram] = make([]listing, 0, size+size/64) // nearly every account has a known program
	return l
}

// Add packs an account. Its key must be above all before.
func (l *loader) Add(a *ledger.Account) {
	r := l.base.store.put(a)
	l.base.noteClosed(a)
	l.base.byKey.listings.Load(listingOf(a.Pubkey.Prefix(), r))
	for k, number := range l.base.numbersOf(a) {
		if number.Known {
			l.members[k] = append(l.members[k], listingOf(number.Value, r))
		}
	}
}

// Finish builds the indexes. The base must not be used before.
func (l *loader) Finish() {
	l.base.byKey.pack()
	for k, members := range l.members {
		// The records of an empty base are numbered in the order of their keys.
		slices.SortFunc(members, func(a, b listing) int {
			return cmp.Or(cmp.Compare(a.number(), b.number()), cmp.Compare(a.ref, b.ref))
		})
		l.base.lists[k].load(members)
	}
}
