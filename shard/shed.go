package shard

import "github.com/tidwall/btree"

// shedAfter is the least number of writes after which a tree is shed.
const shedAfter = 4096

// shedder counts the writes of a tree since it was last shed.
//
// When a node of a btree.BTreeG splits or shrinks, the arrays of its items and children keep
// references to removed items and dead nodes, which stay in memory for as long as the node. A copy
// of a node has only live references. So after as many writes as the tree has items, the tree is copied and the
// copy dropped: each node is then itself copied before its next write.
type shedder struct{ writes int }

// shed copies a tree that has had enough writes. It is called between two jobs.
func shed[T any](s *shedder, tree *btree.BTreeG[T]) {
	if s.writes > max(shedAfter, tree.Len()) {
		copyOf(s, tree)
	}
}

// copyOf returns a copy of the tree for another goroutine to read. Only the owner of the tree may call it,
// since it writes to the tree. Any copy sheds the tree, so the count of writes starts again.
func copyOf[T any](s *shedder, tree *btree.BTreeG[T]) *btree.BTreeG[T] {
	s.writes = 0
	return tree.Copy()
}
