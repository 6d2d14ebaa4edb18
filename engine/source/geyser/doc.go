// Package geyser follows a validator, or a service in front of one, through Yellowstone gRPC: service
// geyser.Geyser, call Subscribe. What of it we use is written down in geyser.proto.
//
// # Nouns
//
// The [Source] is one node to follow. A session is one connection to it, from dialing until
// something ends it. Package yellowstone assembles blocks of what a session receives; the chain
// knows which blocks were emitted and holds back those whose parent was not. The [Filler] is who
// can be asked for blocks that the stream does not show any more, usually over JSON-RPC.
//
// # Order and ownership
//
// Run is the one goroutine that assembles, decides and emits. Each session has two more: one
// takes from the socket and decodes, as fast as the node sends, because a node throws out who reads
// slowly; what it took waits in a queue bounded in bytes, and when that is full the socket is left
// alone. The other answers the node's pings. A fourth goroutine, while Run runs, asks for the mints
// of which the stream shows the header alone. Whoever starts a goroutine waits for its end.
//
// # What is never done in silence
//
// A block is emitted after its parent, or is the root: the first block known to be
// confirmed on a fresh start. A block whose parent was not shown is a gap, unless it builds below
// the root. A gap is first asked for again: the session ends, and the next one begins at the last
// emitted block minus two, or at the confirmed block if that is older. What the node does not keep
// any more is filled by the Filler, up to the parent of the first confirmed block behind the gap. Where
// there is none, or where it fails, nothing is emitted and it is tried again, slower each
// time. Slots that a parent link passes over were skipped: they are no gap.
//
// Statuses name slots alone, and the head that was shown of a slot may have been a wrong one. So
// a block is believed to be final, or is made the root, only when another that was shown builds on it. Where a Filler does not know a
// block that was called confirmed, it is asked from the root on.
//
// A block that is called dead is taken back with all that builds on it, and shown again it stays away. But that is
// the word of one node about a slot: where such a block, or one on it, is confirmed, the session ends, the next one
// shows it again, it is emitted again, and who calls it dead any more is not believed, nor who says so of the root.
//
// A node that contradicts itself or what is final (two blocks at one slot in a stream, a confirmed
// block that builds below the root) is left; its block is not emitted. Statuses of slots of which
// no block was shown are dropped.
package geyser
