// Package ingest is the part of a node that writes. It takes the events of a source, or the commits of a shared log, hands
// them to the sequencer, makes the resulting batches durable, publishes them, and takes snapshots.
//
// # Goroutines
//
// [Writer.Run] starts and awaits all goroutines of the package:
//   - The loop owns the sequencer, which is the only writer of the shards (see package sequencer). It passes events on in
//     arrival order, takes batches, and begins snapshots.
//   - The committer makes one batch after the other durable and then publishes it.
//   - The feeder follows the shared log, if there is one, until the node is its writer, and then runs the source.
//     What it needs of the sequencer it passes to the loop as a function. The source ends when ingest stops for good.
//   - Each snapshot is written, checked and offered by a goroutine of its own; there is one at a time.
//
// The other fields and methods of a [Writer] are for any goroutine.
//
// # Order
//
// While the source is ahead, three things happen at once: the shards apply a block, the sequencer decides about the next
// block, and the committer writes and syncs the batch before. The loop passes a batch on when the committer is idle and no
// event waits, or when the batch is full. So near the tip each block has its own commit. While the
// committer works the next batch grows, and when that is full the loop takes no event. So a failed commit leaves at most one
// applied batch that is never published. Before a snapshot, at the end of the input, after a contradiction and
// before it returns, the loop waits until everything applied is published.
//
// # Failures
//
// A full disk pauses ingest until there is space; the writer of a shared log resigns after Config.MaxLag, and ends once
// there is space, since another node may have written meanwhile. A disk or a shared log that fails, and a contradiction
// of a live source, stop ingest for good. Reads go on in these cases. A node that the shared log was purged past
// ends: it must begin anew. A node fences itself off, and answers nothing any more, if its state differs from the log
// or from its snapshot.
//
// # Shared log
//
// Several nodes may hold one ledger. Then a [SharedLog] orders the records: one node writes it from its source, and the
// others follow. A commit is in the shared log before it is in the own log, so the own log is never ahead; after a crash
// the node follows what it misses. The commits of another node are replayed like the own log after a restart, and each
// record is compared with the result.
//
// A follower that becomes the writer is in the state that a restart on the same log would lead to. Its source goes on from
// the finalized block and shows again the blocks beside the chain and those that wait for their parent, which
// the log does not have. After a snapshot, nothing is published before the status that finalized the block of
// the snapshot: until then the levels of the head were never published together.
package ingest
