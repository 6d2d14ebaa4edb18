package chain

import "ledgerd/engine/ledger"

// BlockID names a block; two blocks may share a slot.
type BlockID struct {
	Slot ledger.Slot
	Hash ledger.Hash
}

// Node is a block whose parent is known. It is on the chain, or kept whole beside it and not visible.
type Node struct {
	Block    *ledger.Block
	Parent   *Node // nil for the newest finalized block
	children []*Node

	// Version is that of the block's record on the present chain, 0 beside the chain. Seq is the newest update up to
	// that record, and StateHash the state hash after it; both are set once the shards have applied the record.
	Version   ledger.Version
	Seq       ledger.Seq
	StateHash ledger.StateHash

	// ConfirmedAgain is the version of the rollback that made the block the newest confirmed one once more, together
	// with base state that was learned since. ConfirmedAgainSeq is the newest update up to that rollback.
	ConfirmedAgain    ledger.Version
	ConfirmedAgainSeq ledger.Seq

	FinalizedBy ledger.Version // of the status record that finalized the block

	// Dead says that the source called the block dead. It stays beside the chain, with its descendants, until
	// one of them is confirmed.
	Dead bool

	// Base says that the node is the base state of an import and stands for the block at its slot, which is not held.
	Base bool
}

// Slot returns the slot of the block.
func (n *Node) Slot() ledger.Slot { return n.Block.Slot }

// ID returns the identifier of the block.
func (n *Node) ID() BlockID { return BlockID{n.Block.Slot, n.Block.Blockhash} }

// OnChain reports whether the block is on the chain, and not beside it.
func (n *Node) OnChain() bool { return n.Version != 0 }
