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
		tree.Copy()
		s.writes = 0
	}
}
