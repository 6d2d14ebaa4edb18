// Package geyser follows a validator, or a service in front of one, through Yellowstone gRPC: service
// geyser.Geyser, call Subscribe. What of it we use is written down in geyser.proto of package nodetest.
//
// # Nouns
//
// The [Source] is the node to follow, or several of which one is followed at a time. A session is one connection to it, from dialing until
// something ends it. Package yellowstone assembles blocks of what a session receives; they and their statuses are
// emitted as they come. The sequencer knows which of them found their place: its answer to a [ledger.Question], the
// verdict, says what is missing. The [Filler] is who can be asked for blocks that the stream does not show any more, usually
// over JSON-RPC.
//
// # Order and ownership
//
// Run is the one goroutine that assembles and emits. Each session has two more: one
// takes from the socket and decodes, as fast as the node sends, because a node throws out who reads
// slowly; what it took waits in a queue bounded in bytes, and when that is full the socket is left
// alone. The other answers the node's pings. Whoever starts a goroutine waits for its end.
//
// Run asks for a verdict when a session begins and after each part of the queue. The sequencer asks the assembler
// meanwhile which blocks are under way, and Run waits.
//
// # Gaps
//
// A block whose parent was not shown is after a gap, unless it builds below the finalized block. Slots that a parent link
// passes over were skipped: they are no gap. A block that came in part, as one does at the begin of a connection, is asked for
// again on the same connection, which loses nothing meanwhile: another connection would begin in the middle of another block.
// What is missing else is asked for again, too: the session ends, and the next one
// begins at the newest confirmed block. If a session shows nothing new before the gap,
// the Filler is asked for it, up to the parent of the first confirmed block after it. Where there is no Filler, or where it
// fails, the chain stays where it is, and Run tries again, slower each time. A Filler that does not know the newest confirmed
// block is asked from the finalized block on: the stream may have shown a wrong one.
//
// # What ends a session
//
// A node that contradicts itself or what is final (two blocks at one slot in a session, a confirmed block that builds below
// the finalized one) is left, and its block does not become a part of the chain. [ledger.SourceInfo].Stream says what is
// believed of a stream.
package geyser
