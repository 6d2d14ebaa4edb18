// Package yellowstone reads what a validator streams through Yellowstone gRPC, the messages
// geyser.SubscribeUpdate of service geyser.Geyser, and assembles blocks of them. The messages may come from a socket or
// from a recording.
//
// # Nouns
//
// An [Update] is one message: an account as a transaction left it, a transaction, the status of one, the head of a
// block (its block meta), or a status of a slot. Entries, pings and whole blocks are not needed. A transaction comes in one message with its
// metadata, so of a block there are as many of one as of the other.
// An [Assembler] gathers the updates of each slot until the block is whole, and then seals it:
// it becomes a ledger.Block. What it gathers is a try, of which a slot may have several. A try is gathering, in part or short, and
// in the end sealed or dead: these states, and what leads to them, stand in assembly.go.
//
// # Order
//
// A validator works on several slots at once, and the updates of one slot come in no
// fixed order: transactions before or after the block's head, account writes even after the head.
// So a block is sealed when its head, as many transactions as the head counts, and the
// status "processed" have come; a slot that is confirmed or finalized is sealed
// with what came, unless the stream is live. Of several writes of an account in a slot the one with the
// highest write version counts. Blocks are emitted as they are sealed, those of all forks. A status is emitted
// after the block it is about.
//
// All writes of a slot come before it is processed. A write that comes after its block all the same is counted, and
// becomes one of each block that builds on that, unless the block writes the account itself: so it comes and goes with its
// branch. If no such block comes, the write is lost. What a block turns out to hold when another stream shows it again is late, too. Blocks that a
// Filler shows in the place of the stream take part, see [Assembler.Fill].
//
// # Live streams
//
// A connection begins in the middle of some slots and may lose updates. So with [Assembler].Live a block is sealed only
// if the stream showed its slot from the begin. That is so
//   - where a status for the slot's first shred or bank came first. A bank that is numbered has written sysvars, and at the begin of an
//     epoch rewards, before that status, and other servers may send it late; so the stream must have shown how its parent began, too;
//   - where its parent was processed before, and a block that builds on it came without such a status, too. A server replays
//     blocks that were frozen before the connection began, without these statuses, and then sends what is new from the middle of
//     a slot on. A validator creates the bank of a child only when it has frozen the parent. So what came of the parent was
//     replayed, or nothing of it was shown but its head and its being processed, which a server may tell later than all else. The two look
//     alike only where a stream is [Assembler].Filtered and the block has nothing to show: then it counts as replayed when a second stream
//     shows nothing of it, either;
//   - where its head came again after other parts of it that came when it was processed: then the server has replayed it on this
//     connection, with the head behind everything that it has. Where a stream is filtered the head may come alone.
//
// A block that was not shown from its begin is in part, and waits for such a proof. A block that is confirmed before
// all of its transactions came is not sealed: an error asks for another stream that begins before it.
// A confirmed block has its parents confirmed, so a lost status does no harm. Where the server numbers banks, those of a slot
// are assembled beside each other: since Alpenglow a validator may make two, and either may be confirmed. Where it does not, a
// bank that is created again drops the updates of the one before, and its block has to be replayed.
//
// # Source of the format
//
// The field numbers are those of Yellowstone's public geyser.proto and of Agave's storage protos
// confirmed_block.proto; they stand beside the fields in message.go, account.go and transaction.go. The tests compare them
// with geyser.proto of package nodetest.
package yellowstone
