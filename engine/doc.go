// Package engine runs one node of a ledger. It recovers what the data directory holds, introduces the parts of the node to
// each other, and reports how the node is.
//
// # Parts
//
// An [Engine] has four parts. The sequencer (package sequencer) makes records of events and is the only writer of the
// shards. The writer (package ingest) feeds it, makes its batches durable, and publishes them. The board (package
// published) shows the newest head. The reader (package reader) answers queries at the version of that head.
//
// # Durability
//
// The log and the snapshots are in a data directory ([datadir.Dir]). A snapshot is the state after
// exactly one record, that of the newest finalized block; it is written from copies of the
// shards while they go on. A start fills the shards from the newest snapshot that is whole and names
// the state hash of its record in the log, replays the log after it, and compares every record with the result.
// The sum over all accounts of the snapshot is verified after that, while the node answers; if it differs, the node fences itself off.
// Then the source goes on from the finalized block: blocks that it shows again change nothing.
//
// # Lifetime
//
// [New] starts nothing. [Engine.Run] recovers, starts shards and writer, and returns
// when all of them ended: the source first, then the last commit, the last snapshot, the
// shards, and the log. A recovery owns the sequencer until Run hands it to the writer.
package engine
