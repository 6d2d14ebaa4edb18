package shard

import "ledgerd/engine/ledger"

// set lists the record r under a number and its account's key, in the place of the one that was listed
// so, which it returns, 0 for none.
func (t *tree) set(number uint64, key *ledger.Pubkey, r ref) (before ref) {
	if t.root == nil {
		t.root = &branch{edition: t.edition, level: 1, n: 1}
		t.root.leaves[0] = &leaf{edition: t.edition}
	}
	t.root = t.ownBranch(t.root)
	if t.root.n == branchMost {
		above := &branch{edition: t.edition, level: t.root.level + 1, n: 1}
		above.kids[0] = t.root
		t.root = above
		t.splitBranch(above, 0)
	}
	b := t.root
	for b.level > 1 {
		i := b.child(number, key)
		// A full one is split on the way down, so that there is room for what splits below.
		if b.kids[i].n == branchMost {
			t.splitBranch(b, i)
			i = b.child(number, key)
		}
		b = t.ownKid(b, i)
	}
	return t.setIn(b, number, key, r)
}

func (t *tree) setIn(b *branch, number uint64, key *ledger.Pubkey, r ref) (before ref) {
	i := b.child(number, key)
	l := t.ownLeaf(b, i)
	at, found := t.find(l, number, key, wholeSpan.of(b, i))
	if found {
		before, l.refs[at] = l.refs[at], r
		return before
	}
	if l.n == leafMost {
		t.makeRoom(b, i)
		i = b.child(number, key)
		l = t.ownLeaf(b, i)
		at, _ = t.find(l, number, key, wholeSpan.of(b, i))
	}
	copy(l.numbers[at+1:l.n+1], l.numbers[at:l.n])
	copy(l.refs[at+1:l.n+1], l.refs[at:l.n])
	l.numbers[at], l.refs[at] = number, r
	l.n++
	return 0
}

// makeRoom takes some entries out of leaf i, which is full: to a neighbour that has room, so
// that leaves stay well filled, else to a new one. The branch must have room.
func (t *tree) makeRoom(b *branch, i int) {
	const roomy = leafMost * 7 / 8
	switch {
	case i > 0 && b.leaves[i-1].n < roomy:
		to, from := t.ownLeaf(b, i-1), b.leaves[i]
		n := (from.n - to.n + 1) / 2
		copy(to.numbers[to.n:], from.numbers[:n])
		copy(to.refs[to.n:], from.refs[:n])
		to.n += n
		copy(from.numbers[:], from.numbers[n:from.n])
		copy(from.refs[:], from.refs[n:from.n])
		from.n -= n
		t.bound(b, i)
	case i+1 < b.n && b.leaves[i+1].n < roomy:
		to := t.ownLeaf(b, i+1)
		t.moveBehind(b.leaves[i], to, (leafMost-to.n+1)/2)
		t.bound(b, i+1)
	default:
		b.open(i + 1)
		b.kids[i+1], b.leaves[i+1] = nil, &leaf{edition: t.edition}
		t.moveBehind(b.leaves[i], b.leaves[i+1], leafMost/2)
		t.bound(b, i+1)
	}
}

// moveBehind moves the last n entries of a leaf to the front of the one behind it.
func (t *tree) moveBehind(from, to *leaf, n int) {
	copy(to.numbers[n:], to.numbers[:to.n])
	copy(to.refs[n:], to.refs[:to.n])
	copy(to.numbers[:n], from.numbers[from.n-n:from.n])
	copy(to.refs[:n], from.refs[from.n-n:from.n])
	to.n += n
	from.n -= n
}

// splitBranch splits child i of a branch, which is a full branch, in two.
func (t *tree) splitBranch(b *branch, i int) {
	left := t.ownKid(b, i)
	half := left.n / 2
	right := &branch{edition: t.edition, level: left.level}
	number, key := left.numbers[half], left.keys[half]
	left.moveTo(right, half)
	b.open(i + 1)
	b.numbers[i+1], b.keys[i+1] = number, key
	b.kids[i+1], b.leaves[i+1] = right, nil
}

// moveTo moves the children from first on behind those of another branch. The bound of the
// first of them is then to be set.
func (b *branch) moveTo(to *branch, first int) {
	copy(to.numbers[to.n:], b.numbers[first:b.n])
	copy(to.keys[to.n:], b.keys[first:b.n])
	copy(to.kids[to.n:], b.kids[first:b.n])
	copy(to.leaves[to.n:], b.leaves[first:b.n])
	to.n += b.n - first
	clear(b.kids[first:b.n])
	clear(b.leaves[first:b.n])
	b.n = first
}

// remove takes out an entry and returns its record, 0 if there is none.
func (t *tree) remove(number uint64, key *ledger.Pubkey) (was ref) {
	if t.root == nil {
		return 0
	}
	t.root = t.ownBranch(t.root)
	was = t.removeIn(t.root, number, key)
	for t.root != nil && t.root.n < 2 {
		switch {
		case t.root.n == 0:
			t.root = nil
		case t.root.level > 1:
			t.root = t.root.kids[0]
		default:
			return was
		}
	}
	return was
}

func (t *tree) removeIn(b *branch, number uint64, key *ledger.Pubkey) (was ref) {
	i := b.child(number, key)
	if b.level > 1 {
		kid := t.ownKid(b, i)
		was = t.removeIn(kid, number, key)
		switch {
		case kid.n == 0:
			b.close(i)
		case kid.n < branchMost/4:
			t.joinBranch(b, i)
		}
		return was
	}
	l := b.leaves[i]
	at, found := t.find(l, number, key, wholeSpan.of(b, i))
	if !found {
		return 0
	}
	l = t.ownLeaf(b, i)
	was = l.refs[at]
	copy(l.numbers[at:], l.numbers[at+1:l.n])
	copy(l.refs[at:], l.refs[at+1:l.n])
	l.n--
	switch {
	case l.n == 0:
		b.close(i)
	case l.n < leafMost/4:
		t.joinLeaf(b, i)
	}
	return was
}

// joinLeaf joins leaf i with a neighbour if both together leave room for more.
func (t *tree) joinLeaf(b *branch, i int) {
	for _, left := range [2]int{i - 1, i} {
		if left < 0 || left+1 >= b.n || b.leaves[left].n+b.leaves[left+1].n > leafMost*3/4 {
			continue
		}
		to, from := t.ownLeaf(b, left), b.leaves[left+1]
		copy(to.numbers[to.n:], from.numbers[:from.n])
		copy(to.refs[to.n:], from.refs[:from.n])
		to.n += from.n
		b.close(left + 1)
		return
	}
}

func (t *tree) joinBranch(b *branch, i int) {
	for _, left := range [2]int{i - 1, i} {
		if left < 0 || left+1 >= b.n || b.kids[left].n+b.kids[left+1].n > branchMost*3/4 {
			continue
		}
		to, from := t.ownKid(b, left), t.ownKid(b, left+1)
		at := to.n
		from.moveTo(to, 0)
		to.numbers[at], to.keys[at] = b.numbers[left+1], b.keys[left+1]
		b.close(left + 1)
		return
	}
}
