package chain

import (
	"bytes"

	"ledgerd/engine/ledger"
)

func idOf(b *ledger.Block) ledger.BlockID { return ledger.BlockID{Slot: b.Slot, Hash: b.Blockhash} }

// Node is a block of the tree, on the chain or beside it, or a block that waits for its parent. Only the owner of the
// Chain sets its fields.
type Node struct {
	Block    *ledger.Block
	Parent   *Node // nil for the newest finalized block, and while the block waits for its parent
	children []*Node

	// Version is that of the block's record on the present chain, 0 beside the chain. Seq is the newest update up to
	// that record, StateHash the state hash after it and Horizon the record's; they are set once the shards have applied the record.
	Version   ledger.Version
	Seq       ledger.Seq
	StateHash ledger.StateHash
	Horizon   ledger.Slot

	// ConfirmedAgain is the version of the rollback that made the block the newest confirmed one once more, together
	// with base state that was learned since, or of base state that says to belong to it while it is the newest
	// confirmed one. ConfirmedAgainSeq is the newest update up to that record.
	ConfirmedAgain    ledger.Version
	ConfirmedAgainSeq ledger.Seq

	// Claimed is the highest level that the source gave the block before the block joined the tree.
	Claimed ledger.Commitment

	// Dead says that the source called the block dead. It stays beside the chain, with its descendants, until
	// one of them is confirmed.
	Dead bool

	// Base says that the node is the base state of an import and stands for the block at its slot, which is not held.
	Base bool

	// Provisional says that the node is the block of a snapshot and that the status record that finalized it lies in the
	// log after the snapshot and is not replayed yet.
	Provisional bool
}

// Slot returns the slot of the block.
func (n *Node) Slot() ledger.Slot { return n.Block.Slot }

// ID returns the identifier of the block.
func (n *Node) ID() ledger.BlockID { return idOf(n.Block) }

// OnChain reports whether the block is on the chain, and not beside it.
func (n *Node) OnChain() bool { return n.Version != 0 }

// HasChildren reports whether blocks of the tree build on n.
func (n *Node) HasChildren() bool { return len(n.children) > 0 }

// IsGivenUp reports whether n, or an ancestor of it beside the chain, is dead.
func (n *Node) IsGivenUp() bool {
	for ; n != nil && !n.OnChain(); n = n.Parent {
		if n.Dead {
			return true
		}
	}
	return false
}

// Best returns the highest block among n and its descendants that are not dead. Of two at one slot it is the one of
// the lower hash, so that the order of arrival does not matter.
func (n *Node) Best() *Node {
	best := n
	branch := []*Node{n}
	for i := 0; i < len(branch); i++ {
		b := branch[i]
		if b.Slot() > best.Slot() || b.Slot() == best.Slot() && bytes.Compare(b.Block.Blockhash[:], best.Block.Blockhash[:]) < 0 {
			best = b
		}
		for _, child := range b.children {
			if !child.Dead {
				branch = append(branch, child)
			}
		}
	}
	return best
}
