package shard

import (
	"cmp"
	"math"
	"slices"
	"unsafe"

	"github.com/tidwall/btree"

	"ledgerd/engine/ledger"
)

// newest is above all versions: a read at it returns the newest value.
const newest = ledger.Version(math.MaxUint64)

// mints is the versioned map of the facts of mints. One tree has all values of a key, the newest first; the
// oldest is the base value, which reads at the folded version return.
type mints struct {
	tree   *btree.BTreeG[mintEntry]
	recent []*mintFacts // of versions that are not folded, in their order
	probe  mintFacts    // the search key of facts; as a field it is not allocated for every look-up
}

// mintEntry is one value with the prefix of its key, so that most comparisons follow no pointer.
type mintEntry struct {
	prefix uint64
	*mintFacts
}

// mintFacts are the facts of a mint from a version on.
type mintFacts struct {
	pubkey  ledger.Pubkey
	version ledger.Version // 0, below all versions, for restored facts and direct base state
	absent  bool           // nothing is known from that version on
	mint    ledger.Mint
}

func newMints() *mints {
	return &mints{tree: newTree(func(a, b mintEntry) bool {
		if a.prefix != b.prefix {
			return a.prefix < b.prefix
		}
		if c := a.pubkey.Compare(&b.pubkey); c != 0 {
			return c < 0
		}
		return a.version > b.version
	})}
}

// entry returns the tree's entry for f.
func (f *mintFacts) entry() mintEntry { return mintEntry{f.pubkey.Prefix(), f} }

// facts returns the newest value of a key up to version v, nil if there is none.
func (m *mints) facts(key *ledger.Pubkey, v ledger.Version) (found *mintFacts) {
	m.probe.pubkey, m.probe.version = *key, v
	m.tree.Ascend(m.probe.entry(), func(e mintEntry) bool {
		if e.pubkey == *key {
			found = e.mintFacts
		}
		return false
	})
	return found
}

// at returns the facts of a mint at version v, nil if nothing is known.
func (m *mints) at(key *ledger.Pubkey, v ledger.Version) *ledger.Mint {
	if f := m.facts(key, v); f != nil && !f.absent {
		return &f.mint
	}
	return nil
}

// put writes the facts of a mint as of version v, nil for none. Versions begin at 1 and only grow.
func (m *mints) put(v ledger.Version, key ledger.Pubkey, mint *ledger.Mint) {
	f := &mintFacts{pubkey: key, version: v, absent: mint == nil}
	if mint != nil {
		f.mint = *mint
	}
	m.tree.Set(f.entry())
	m.recent = append(m.recent, f)
}

// putBase replaces the facts of a mint below all versions, nil for none. It must not be called during a read.
func (m *mints) putBase(key ledger.Pubkey, mint *ledger.Mint) {
	if f := m.facts(&key, newest); f != nil {
		m.tree.Delete(f.entry())
	}
	if mint != nil {
		m.tree.Set((&mintFacts{pubkey: key, mint: *mint}).entry())
	}
}

// writtenSince returns the keys written by version first or later, with duplicates.
func (m *mints) writtenSince(first ledger.Version) (keys []ledger.Pubkey) {
	from, _ := slices.BinarySearchFunc(m.recent, first, func(f *mintFacts, v ledger.Version) int { return cmp.Compare(f.version, v) })
	for _, f := range m.recent[from:] {
		keys = append(keys, f.pubkey)
	}
	return keys
}

// fold removes values that no read at version v or later returns. It handles at most budget written values and
// reports whether there are more.
func (m *mints) fold(v ledger.Version, budget int) (more bool) {
	for ; len(m.recent) > 0 && m.recent[0].version <= v; budget-- {
		if budget == 0 {
			return true
		}
		f := m.recent[0]
		m.recent[0] = nil
		m.recent = m.recent[1:]
		if base := m.facts(&f.pubkey, f.version-1); base != nil {
			m.tree.Delete(base.entry())
		}
		// The same version may have written the key twice: the tree then has the second value in place of f.
		if f.absent && m.facts(&f.pubkey, f.version) == f {
			m.tree.Delete(f.entry())
		}
	}
	return false
}

// overlayBytes estimates the memory of the values that are not folded, and baseBytes that of the others.
func (m *mints) overlayBytes() int {
	n := len(m.recent)
	return treeBytes[mintEntry](n) + n*int(unsafe.Sizeof(mintFacts{})+unsafe.Sizeof(m.recent[0]))
}

func (m *mints) baseBytes() int {
	n := max(0, m.tree.Len()-len(m.recent)) // a version may have written a key twice
	return treeBytes[mintEntry](n) + n*int(unsafe.Sizeof(mintFacts{}))
}

// freeze returns a copy of m for another goroutine to walk.
func (m *mints) freeze() *mints { return &mints{tree: m.tree.Copy()} }

// scan calls visit, in key order, for the facts of every mint at version v, until it returns false.
func (m *mints) scan(v ledger.Version, visit func(*mintFacts) bool) {
	var last *mintFacts // the newest visible value of the last key
	m.tree.Scan(func(e mintEntry) bool {
		if e.version > v || last != nil && last.pubkey == e.pubkey {
			return true
		}
		last = e.mintFacts
		return e.absent || visit(e.mintFacts)
	})
}
