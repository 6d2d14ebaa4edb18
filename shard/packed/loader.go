package packed

import "ledgerd/engine/ledger"

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
		l.base.lists[k].load(byGroup(members))
	}
}

// byGroup returns the members sorted by group; it is a stable radix sort. It allocates a second slice of the same
// size and uses the first as scratch.
func byGroup(members []listing) []listing {
	const bits = 11 // of one pass: the write positions of 2^11 counters stay in the processor's caches
	var all uint32
	for i := range members {
		all |= members[i].high
	}
	to := make([]listing, len(members))
	for shift := 0; shift < 32 && all>>shift != 0; shift += bits {
		var at [1 << bits]int
		for i := range members {
			at[members[i].high>>shift%(1<<bits)]++
		}
		sum := 0
		for i, n := range at {
			at[i] = sum
			sum += n
		}
		for _, m := range members {
			digit := m.high >> shift % (1 << bits)
			to[at[digit]] = m
			at[digit]++
		}
		members, to = to, members
	}
	return members
}
