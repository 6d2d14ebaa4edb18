package vfstest

import "slices"

// place is a name in a directory. The zero value is none.
type place struct {
	dir  *node
	name string
}

// naming is a change of the name of a node since its directory was synced.
type naming struct {
	node *node
	from place // zero: it had none
	to   place // zero: it has none any more
}

// apply does a change in those names of directories that namesOf returns.
func (c naming) apply(namesOf func(dir *node) map[string]*node) {
	if c.from.dir != nil {
		delete(namesOf(c.from.dir), c.from.name)
	}
	if c.to.dir != nil {
		namesOf(c.to.dir)[c.to.name] = c.node
	}
}

// keepLocked makes the changes of names durable that are picked, and those that they cannot do without: the
// earlier ones of the same names, and by that of the same node. Otherwise a file that was renamed away
// could be overwritten by its follower, and be found under neither name.
func (m *Memory) keepLocked(picked func(naming) bool) {
	kept := make([]bool, len(m.unsynced))
	for i, c := range m.unsynced {
		kept[i] = picked(c)
	}
	needed := map[place]bool{}
	for i, c := range slices.Backward(m.unsynced) {
		if kept[i] || needed[c.from] || needed[c.to] {
			kept[i] = true
			needed[c.from], needed[c.to] = c.from.dir != nil, c.to.dir != nil // no place is not a place in common
		}
	}
	var left []naming
	for i, c := range m.unsynced {
		if kept[i] {
			c.apply(func(dir *node) map[string]*node { return dir.kept })
		} else {
			left = append(left, c)
		}
	}
	m.unsynced = left
}
