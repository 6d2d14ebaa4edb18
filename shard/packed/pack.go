package packed

import "github.com/tidwall/btree"

// Pack makes a tree that was just loaded in order take as little memory as it can.
//
// Loading leaves every node half full, in an array twice as long of which the other
// half is a node's that moved out. A node that is copied gets an array for what it has. Nodes
// that are half full have room for inserts, so afterwards they split no sooner than others.
func Pack[T any](tree *btree.BTreeG[T]) {
	tree.Copy()
	tree.WalkMut(func([]T) bool { return true })
}
