package shard

import (
	"math"

	"ledgerd/engine/ledger"
)

const (
	// leafMost makes a leaf fill 2 KiB, which memory comes in.
	leafMost = 169
	// branchMost makes a branch fill 4 KiB. There is one for some fifty leaves.
	branchMost = 72
)

// tree lists records in the order of a number, and of their accounts' keys where that is
// equal. What the number says is up to the owner: the beginning of the key, or a group and
// the beginning of the key. It is a B-tree with all entries in the leaves, which have no
// pointers: 12 bytes an entry.
//
// A frozen copy of the tree shares its nodes, which the tree from then on copies before
// it writes to them.
type tree struct {
	records *chunks[record] // which the entries are of
	root    *branch         // nil where there is no entry
	edition uint64          // of the nodes that no copy shares
}

// leaf is some entries. The keys are by themselves for a search to touch little memory.
type leaf struct {
	edition uint64
	n       int
	numbers [leafMost]uint64
	refs    [leafMost]ref
}

// branch is some leaves or, at a higher level, branches. Each but the first has a bound: what is
// before it is below the bound, nothing in it is. Bounds need not be of entries that are there.
type branch struct {
	edition uint64
	level   int // 1 above leaves
	n       int
	numbers [branchMost]uint64
	keys    [branchMost]ledger.Pubkey
	kids    [branchMost]*branch
	leaves  [branchMost]*leaf
}

// freeze returns a copy that stays as it is, for others to read with the records they hold.
func (t *tree) freeze(records *chunks[record]) tree {
	t.edition++
	return tree{records: records, root: t.root}
}

// compare orders a number and a key against entry i of a leaf.
func (t *tree) compare(number uint64, key *ledger.Pubkey, l *leaf, i int) int {
	switch {
	case number < l.numbers[i]:
		return -1
	case number > l.numbers[i]:
		return 1
	}
	return key.Compare(&t.records.at(l.refs[i]).key)
}

// span is between which numbers all entries of a leaf are, as far as the branches above tell.
type span struct{ low, high uint64 }

var wholeSpan = span{0, math.MaxUint64}

// of returns the span of child i of a branch that is within s.
func (s span) of(b *branch, i int) span {
	if i > 0 {
		s.low = b.numbers[i]
	}
	if i+1 < b.n {
		s.high = b.numbers[i+1]
	}
	return s
}

// guess returns about where among n numbers spread evenly over the span a number is.
func (s span) guess(number uint64, n int) int {
	const shift = 8 // so that the product stays within 64 bits
	wide := (s.high - s.low) >> shift
	if wide == 0 || number < s.low || number > s.high {
		return n / 2
	}
	return int(min((number-s.low)>>shift*uint64(n)/wide, uint64(n-1)))
}

// around returns the first and the last place at which a number can have its first entry. Keys
// are spread evenly, nearly always: looking around the place where it would be then touches
// fewer lines of memory than halving all of the leaf.
func (l *leaf) around(number uint64, at int) (low, high int) {
	step := 8
	if l.numbers[at] < number {
		for low = at + 1; low+step < l.n; step *= 2 {
			if l.numbers[low+step] >= number {
				return low, low + step
			}
			low += step + 1
		}
		return min(low, l.n), l.n
	}
	for high = at; high-step >= 0; step *= 2 {
		if l.numbers[high-step] < number {
			return high - step + 1, high
		}
		high -= step
	}
	return 0, high
}

// find returns the place of the first entry of a leaf that is not below, and whether it is the
// very one. The leaf has entries.
func (t *tree) find(l *leaf, number uint64, key *ledger.Pubkey, within span) (at int, found bool) {
	return t.findFrom(l, l.first(number, within), number, key)
}

// first returns the place of the first entry of a leaf whose number is not below.
func (l *leaf) first(number uint64, within span) int {
	low, high := l.around(number, within.guess(number, l.n))
	for low < high {
		middle := int(uint(low+high) >> 1)
		if l.numbers[middle] < number {
			low = middle + 1
		} else {
			high = middle
		}
	}
	return low
}

// findFrom is find where it is known which entry is the first whose number is not below.
func (t *tree) findFrom(l *leaf, low int, number uint64, key *ledger.Pubkey) (at int, found bool) {
	if low == l.n || l.numbers[low] != number {
		return low, false
	}
	// Here numbers are equal, mostly just one; beyond it keys decide.
	c := t.compare(number, key, l, low)
	if c <= 0 {
		return low, c == 0
	}
	low, high := low+1, l.n
	for low < high {
		middle := int(uint(low+high) >> 1)
		c := t.compare(number, key, l, middle)
		if c == 0 {
			return middle, true
		}
		if c > 0 {
			low = middle + 1
		} else {
			high = middle
		}
	}
	return low, false
}

// child returns the place of the only child that can have the entry.
func (b *branch) child(number uint64, key *ledger.Pubkey) int {
	low, high := 1, b.n
	for low < high {
		middle := int(uint(low+high) >> 1)
		above := number < b.numbers[middle]
		if number == b.numbers[middle] {
			above = key.Compare(&b.keys[middle]) < 0
		}
		if above {
			high = middle
		} else {
			low = middle + 1
		}
	}
	return low - 1
}

// get returns the record of an entry, 0 if there is none.
func (t *tree) get(number uint64, key *ledger.Pubkey) ref {
	if t.root == nil {
		return 0
	}
	l, within := t.leaf(number, key)
	if at, found := t.find(l, number, key, within); found {
		return l.refs[at]
	}
	return 0
}

// leaf returns the only leaf that can have an entry, and the span of it. The tree has entries.
func (t *tree) leaf(number uint64, key *ledger.Pubkey) (*leaf, span) {
	b, within := t.root, wholeSpan
	i := b.child(number, key)
	for b.level > 1 {
		within = within.of(b, i)
		b = b.kids[i]
		i = b.child(number, key)
	}
	return b.leaves[i], within.of(b, i)
}

// ascend calls visit for every entry that is not below, in order, until it returns false.
func (t *tree) ascend(number uint64, key *ledger.Pubkey, visit func(number uint64, r ref) bool) {
	if t.root != nil {
		t.ascendIn(t.root, number, key, visit)
	}
}

func (t *tree) ascendIn(b *branch, number uint64, key *ledger.Pubkey, visit func(uint64, ref) bool) bool {
	first := 0
	if key != nil {
		first = b.child(number, key)
	}
	for i := first; i < b.n; i++ {
		if i > first {
			key = nil // all of what follows
		}
		if b.level > 1 {
			if !t.ascendIn(b.kids[i], number, key, visit) {
				return false
			}
			continue
		}
		l, at := b.leaves[i], 0
		if key != nil {
			at, _ = t.find(l, number, key, wholeSpan.of(b, i))
		}
		for ; at < l.n; at++ {
			if !visit(l.numbers[at], l.refs[at]) {
				return false
			}
		}
	}
	return true
}

// ownLeaf returns a leaf that no copy shares in the place of leaf i of a branch that is so.
func (t *tree) ownLeaf(b *branch, i int) *leaf {
	if l := b.leaves[i]; l.edition != t.edition {
		own := *l
		own.edition = t.edition
		b.leaves[i] = &own
	}
	return b.leaves[i]
}

func (t *tree) ownKid(b *branch, i int) *branch {
	b.kids[i] = t.ownBranch(b.kids[i])
	return b.kids[i]
}

func (t *tree) ownBranch(b *branch) *branch {
	if b.edition == t.edition {
		return b
	}
	own := *b
	own.edition = t.edition
	return &own
}

// open makes room for child i of a branch, whose bound is then to be set.
func (b *branch) open(i int) {
	copy(b.numbers[i+1:b.n+1], b.numbers[i:b.n])
	copy(b.keys[i+1:b.n+1], b.keys[i:b.n])
	copy(b.kids[i+1:b.n+1], b.kids[i:b.n])
	copy(b.leaves[i+1:b.n+1], b.leaves[i:b.n])
	b.n++
}

// close takes out child i.
func (b *branch) close(i int) {
	copy(b.numbers[i:], b.numbers[i+1:b.n])
	copy(b.keys[i:], b.keys[i+1:b.n])
	copy(b.kids[i:], b.kids[i+1:b.n])
	copy(b.leaves[i:], b.leaves[i+1:b.n])
	b.n--
	b.kids[b.n], b.leaves[b.n] = nil, nil
}

// bound makes the first entry of leaf i its bound.
func (t *tree) bound(b *branch, i int) {
	l := b.leaves[i]
	b.numbers[i], b.keys[i] = l.numbers[0], t.records.at(l.refs[0]).key
}
