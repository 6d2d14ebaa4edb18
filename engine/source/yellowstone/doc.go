// Package yellowstone reads what a validator streams through Yellowstone gRPC, the messages
// geyser.SubscribeUpdate of service geyser.Geyser, and assembles blocks of them. Where the messages
// come from, a socket or a recording, is not its business.
//
// # Nouns
//
// An [Update] is one message: an account as a transaction left it, a transaction, the head of a
// block (its block meta), or a status of a slot. Entries, pings and whole blocks say nothing that
// we need. An [Assembler] gathers the updates of each slot until the block is whole, and seals it
// then: it becomes a ledger.Block.
//
// # Order
//
// A validator works on several slots at once, and its updates of one slot come in no
// fixed order: transactions after the block's head or before it, account writes even after the head.
// So a block is sealed when its head, as many transactions as the head counts, and the
// status "processed" are there; a slot that is called confirmed or finalized is sealed
// with what came, unless the stream is live. Of several writes of an account in a slot the one with the
// highest write version counts. Blocks are emitted as they are sealed; what a fork means is decided by
// who takes them. A status is emitted after the block it is about.
//
// All writes of a slot come before it is processed. Should one come behind its block all the same, it is counted, and
// becomes one of each block that builds on that, unless that writes the account itself: so it comes and goes with its
// branch. Where the next block comes from elsewhere, or never, it is lost.
//
// # Live streams
//
// A connection begins somewhere and may lose something. So with [Assembler].Live a block is sealed only
// if the stream showed its slot from the begin: it told of the slot's first shred or bank before
// anything else of it, or that its parent was over. And a block that is called confirmed before
// all of its transactions came is no block yet: [ShortError] asks to begin again before it.
// What was said of a block is said of those it builds on, so no status is needed that was lost. A later
// try of a slot, where the server numbers them, drops what came of the earlier one.
//
// # Source of the format
//
// The field numbers are those of Yellowstone's public geyser.proto and of Agave's storage protos
// confirmed_block.proto; they stand beside the fields in message.go and transaction.go.
package yellowstone
