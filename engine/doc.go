// Package engine runs one node of a ledger: it recovers what the data directory holds, hands the events of a source to the
// sequencer, commits what that makes of them, and answers questions about any published version.
//
// # Nouns
//
// The sequencer (see package sequencer) is the only writer of the shards. One goroutine owns it: it hands over events
// in arrival order, and takes batches, each of them records and the [ledger.Head] that stands after them. The committer,
// a goroutine of its own, commits one batch after the other to the [Log] and publishes it.
//
// A query reads the newest head once, asks the shards at that head's version, and so is
// answered from one block, whatever is applied, undone or folded meanwhile.
//
// # Order
//
// Events are applied in the order they were emitted. What is applied is unseen until its
// records are durable; then head and publication appear together, in log order.
//
// While the source is ahead, three things go on at once: the shards apply a block, the
// sequencer decides about the next one and collects what the one before led to, and the
// committer writes and syncs the batch before. A batch is handed over when there is none on
// its way and no event waits, or when it is full; so near the tip each block has its own commit,
// at once. While a batch is on its way the next one grows, and when that is full no more events
// are taken. Nothing else is applied ahead, so a failed commit leaves at most one batch behind it
// that nobody ever sees. Before a snapshot, at the end of the input, after a contradiction and on
// the way out the sequencer waits until everything applied is visible.
//
// # Durability
//
// The log and the snapshots lie in a data directory ([datadir.Dir]). A snapshot is the state after
// exactly one record, that of the newest finalized block; it is written from copies of the
// shards while they go on. A start fills the shards from the newest snapshot that is whole,
// carries out the log behind it once more, and holds every record against what that led
// to. Then the source goes on from the finalized block: what it shows again is known.
//
// Several nodes may hold one ledger: then a [SharedLog] orders the records, one node writes it from its
// source, and the others follow (see follow.go). A commit is in the shared log before it is in the own
// one, so a node's own log is never ahead, and what it misses after a crash it follows.
//
// A full disk pauses ingest until there is space; one that fails stops it for good. Reads go
// on in both cases.
//
// # Lifetime
//
// [New] starts nothing. [Engine.Run] recovers, starts shards, source and sequencer, and returns
// when all of them ended: the source first, then the last commit, the last snapshot, the
// shards, and the log.
package engine
