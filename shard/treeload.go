package shard

// loadFill is how full a loaded leaf is: a few inserts do not split it.
const loadFill = leafMost * 15 / 16

// treeLoader makes a tree of entries that come in order.
type treeLoader struct {
	records *chunks[record]
	last    *leaf
	n       int // entries in last
	leaves  []*leaf
}

// add adds an entry, which comes after all before.
func (b *treeLoader) add(number uint64, r ref) {
	if b.last == nil || b.n == loadFill {
		b.last, b.n = new(leaf), 0
		b.leaves = append(b.leaves, b.last)
	}
	l := b.last
	l.numbers[b.n], l.refs[b.n] = number, r
	b.n++ // as in chunks.reach, a new leaf is not read before it is written
	l.n = b.n
}

// tree returns the tree of all that was added.
func (b *treeLoader) tree() tree {
	t := tree{records: b.records}
	if len(b.leaves) == 0 {
		return t
	}
	var level []*branch
	firsts := b.leaves // of each branch the first leaf, by which it is bounded
	for from := 0; from < len(b.leaves); {
		some := share(len(b.leaves) - from)
		n := &branch{level: 1, n: some}
		copy(n.leaves[:], b.leaves[from:from+some])
		for i := range some {
			t.bound(n, i)
		}
		level = append(level, n)
		firsts[len(level)-1] = b.leaves[from]
		from += some
	}
	for len(level) > 1 {
		up := 0
		for from := 0; from < len(level); up++ {
			some := share(len(level) - from)
			n := &branch{level: level[0].level + 1, n: some}
			copy(n.kids[:], level[from:from+some])
			for i := range some {
				n.numbers[i], n.keys[i] = firsts[from+i].numbers[0], t.records.at(firsts[from+i].refs[0]).key
			}
			level[up], firsts[up] = n, firsts[from]
			from += some
		}
		level = level[:up]
	}
	t.root = level[0]
	return t
}

// share returns how many of so many children the next branch gets: nearly as many as it can
// have, and the last two about the same.
func share(left int) int {
	const most = branchMost * 7 / 8
	switch {
	case left <= most:
		return left
	case left < 2*most:
		return (left + 1) / 2
	}
	return most
}
