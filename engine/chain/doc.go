// Package chain is the fork choice of one ledger. It has no goroutine and does no I/O.
//
// # Nouns
//
// A [Node] is a block. The [Chain] is the tree of the nodes whose parent is known, from the newest finalized block on.
// One branch of the tree is the chain: it leads from the finalized block to the tip. A block whose parent has not
// arrived waits and is not in the tree. An orphan is a block that was dropped with an abandoned branch; only its
// identifier is remembered.
//
// # Rules
//
// The chain decides, and its owner carries out. The owner asks where a block belongs ([Chain.Place]), whether it may
// become the tip ([Chain.Wins]) and what has to be undone and appended for that ([Chain.MoveTo]); it makes a record of
// each step and reports it with [Chain.Undone], [Chain.Appended] and [Chain.Finalize].
// One goroutine uses a Chain. The owner hands out a [View], and a View has no method that changes the Chain; its receiver
// only reads the nodes.
//
// A [ledger.SourceInfo].Stream shows blocks in any order. Which of them contradict what is final shows only when they are
// confirmed, so all without a parent wait, and [Chain.Gap] says what is missing below them.
//
// A block becomes the tip because of its slot alone only if it descends from the newest confirmed block. No move
// undoes the finalized block or more than [MaxRollbackBlocks] blocks.
package chain
