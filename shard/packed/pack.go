package packed

import "github.com/tidwall/btree"

// Pack reduces the memory of a tree that was just loaded in order.
//
// Loading leaves every node half full, with an array twice as long as needed. Copying a node gives it an array of
// the right length. So Pack marks all nodes as shared and makes the tree copy each.
func Pack[T any](tree *btree.BTreeG[T]) {
	tree.Copy()
	tree.WalkMut(func([]T) bool { return true })
}
