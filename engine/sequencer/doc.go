// Package sequencer is the one writer of a node's state. It turns the events of a source, or the commits of a log, into
// one sequence of records, and has the shards apply them. It does no I/O and starts no goroutine.
//
// # Nouns
//
// The [Sequencer] takes events in arrival order. It decides what each of them means for the chain (see package
// chain): a block is appended, replaces others, waits, or is dropped; a status moves a level. Then it carries that
// out: it has the shards apply it, and makes a [ledger.Record] of each step. A [Batch] is the records since the batch
// before, with the [ledger.Head] after them; it is the unit of a commit. The retained blocks are those of
// the chain that queries may ask for, as far back as a [Retention] allows.
//
// # Ownership
//
// One goroutine at a time uses a Sequencer, except that any goroutine may call [Sequencer.Counters]. The sequencer alone
// sends blocks, rollbacks, base state and folds to the shards, and it alone changes the chain and the retained blocks:
// [Sequencer.Chain] returns a [chain.View], which has no method that changes the chain. A Batch belongs to its receiver:
// nothing that is applied later changes it.
//
// # Order
//
// A record gets its version when it is decided, and its updates when the shards are done with it. The sequencer goes on
// deciding while the shards have at most two records to apply; [Sequencer.Seal] waits for all of them. Batches are made,
// committed and shown in one order. What a batch finalized is folded once no query can
// read below it any more: Config.FoldAfter after the caller reported with [Sequencer.Shown] that the batch is visible.
//
// A stream shows blocks without their parents, and may be wrong (see [ledger.SourceInfo]). Its events take the same queue; a
// [ledger.Question] among them is answered once all before it are decided. An event that contradicts the chain is dropped,
// and the answer says so; for every other source it is an error.
//
// A replay takes the records of a log in place of events. It makes no decision anew, repeats the effect of each record, and
// compares the record that this makes with the logged one. A difference matches [ledger.ErrCorrupt]. After a replay the
// sequencer is in the state in which the writer of the log was, and takes events from there.
//
// # Errors
//
// An error of a method that applies something is final: the caller takes no further event. Everything before the event that
// failed may still be sealed and committed.
package sequencer
