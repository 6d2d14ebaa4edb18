package shard

import "github.com/tidwall/btree"

// shedAfter is the fewest writes after which a tree is made to shed.
const shedAfter = 4096

// shedder counts the writes of a tree, to know when it should shed.
//
// Where a node of the tree splits or shrinks, the arrays of its items and children keep
// pointing at what went elsewhere or was deleted: old values, and whole dead nodes, are
// pinned for as long as the node lives. A node that is copied takes along only what it
// lists. So after as many writes as the tree has items it is copied and the copy dropped:
// each node that is written to afterwards is copied first, and sheds.
type shedder struct{ writes int }

// shed is called between pieces of work.
func shed[T any](s *shedder, tree *btree.BTreeG[T]) {
	if s.writes > max(shedAfter, tree.Len()) {
		copyOf(s, tree)
	}
}

// copyOf returns a copy of the tree for others to read. Only the tree's owner may take it:
// it changes the tree, though not what is in it. Whoever keeps the copy, the tree sheds by
// it, so shedding starts to count anew and nodes are not copied twice for nothing.
func copyOf[T any](s *shedder, tree *btree.BTreeG[T]) *btree.BTreeG[T] {
	s.writes = 0
	return tree.Copy()
}
