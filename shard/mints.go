package shard

import (
	"cmp"
	"math"
	"slices"

	"github.com/tidwall/btree"

	"ledgerd/engine/ledger"
)

// newest reads whatever was applied last.
const newest = ledger.Version(math.MaxUint64)

// degree of the B-trees that point at values. With entries compared inline, 64 measured best
// for both lookups and memory on the reference machine.
const degree = 64

// mints is the versioned map of the facts of mints. One tree lists all values of a key, the newest first; the
// oldest of them is the base, which reads at the folded version see.
type mints struct {
	tree    *btree.BTreeG[mintEntry]
	ofTree  shedder
	written []*mintFacts // of versions that are not folded, in their order

	// What a look-up needs, so that it allocates nothing.
	probe mintFacts
	found *mintFacts
	first func(mintEntry) bool // leaves its argument in found
}

// mintEntry is one value, with the first 8 bytes of its key inline, so that most comparisons follow no pointer.
type mintEntry struct {
	prefix uint64
	*mintFacts
}

// mintFacts are the facts of a mint from a version on. 0 is below all versions.
type mintFacts struct {
	pubkey  ledger.Pubkey
	version ledger.Version
	absent  bool // nothing is known from then on
	mint    ledger.Mint
}

func newMints() *mints {
	m := &mints{tree: btree.NewBTreeGOptions(func(a, b mintEntry) bool {
		if a.prefix != b.prefix {
			return a.prefix < b.prefix
		}
		if c := a.pubkey.Compare(&b.pubkey); c != 0 {
			return c < 0
		}
		return a.version > b.version
	}, btree.Options{NoLocks: true, Degree: degree})}
	m.first = func(e mintEntry) bool {
		m.found = e.mintFacts
		return false
	}
	return m
}

// entry returns f as it is listed.
func (f *mintFacts) entry() mintEntry { return mintEntry{f.pubkey.Prefix(), f} }

// facts returns the newest value of a key up to version v, nil if there is none.
func (m *mints) facts(key *ledger.Pubkey, v ledger.Version) *mintFacts {
	m.probe.pubkey, m.probe.version, m.found = *key, v, nil
	m.tree.Ascend(m.probe.entry(), m.first)
	if m.found == nil || m.found.pubkey != *key {
		return nil
	}
	return m.found
}

// at returns what is known of a mint at version v, nil for nothing.
func (m *mints) at(key *ledger.Pubkey, v ledger.Version) *ledger.Mint {
	if f := m.facts(key, v); f != nil && !f.absent {
		return &f.mint
	}
	return nil
}

// put writes what is known as of version v, nil for nothing. Versions begin at 1 and only grow.
func (m *mints) put(v ledger.Version, key ledger.Pubkey, mint *ledger.Mint) {
	f := &mintFacts{pubkey: key, version: v, absent: mint == nil}
	if mint != nil {
		f.mint = *mint
	}
	m.set(f)
	m.written = append(m.written, f)
}

// putBase writes what is known below all versions, nil for nothing. It is for the time before anybody reads.
func (m *mints) putBase(key ledger.Pubkey, mint *ledger.Mint) {
	if f := m.facts(&key, newest); f != nil {
		m.remove(f)
	}
	if mint != nil {
		m.set(&mintFacts{pubkey: key, mint: *mint})
	}
}

func (m *mints) set(f *mintFacts) {
	m.ofTree.writes++
	m.tree.Set(f.entry())
}

func (m *mints) remove(f *mintFacts) {
	m.ofTree.writes++
	m.tree.Delete(f.entry())
}

// writtenSince returns the keys written by version first or later, some more than once.
func (m *mints) writtenSince(first ledger.Version) (keys []ledger.Pubkey) {
	from, _ := slices.BinarySearchFunc(m.written, first, func(f *mintFacts, v ledger.Version) int { return cmp.Compare(f.version, v) })
	for _, f := range m.written[from:] {
		keys = append(keys, f.pubkey)
	}
	return keys
}

// fold removes values that no read at version v or later sees, for at most budget of those written, and
// reports whether there is more to do.
func (m *mints) fold(v ledger.Version, budget int) (more bool) {
	for ; len(m.written) > 0 && m.written[0].version <= v; budget-- {
		if budget == 0 {
			return true
		}
		f := m.written[0]
		m.written[0] = nil
		m.written = m.written[1:]
		switch now := m.facts(&f.pubkey, v); {
		case now.version != f.version:
			m.remove(f) // a newer one is folded too
		case now == f: // else its version wrote the key once more
			if base := m.facts(&f.pubkey, f.version-1); base != nil {
				m.remove(base)
			}
			if f.absent {
				m.remove(f)
			}
		}
	}
	return false
}

// freeze returns what m holds now, to be walked by another goroutine.
func (m *mints) freeze() *mints { return &mints{tree: copyOf(&m.ofTree, m.tree)} }

// ascend calls visit for what is known at version v of every mint from a key on, in key order, until it
// returns false.
func (m *mints) ascend(from *ledger.Pubkey, v ledger.Version, visit func(*mintFacts) bool) {
	var last *mintFacts // seen at v
	probe := mintFacts{pubkey: *from, version: newest}
	m.tree.Ascend(probe.entry(), func(e mintEntry) bool {
		if e.version > v || last != nil && last.pubkey == e.pubkey {
			return true
		}
		last = e.mintFacts
		return e.absent || visit(e.mintFacts)
	})
}
