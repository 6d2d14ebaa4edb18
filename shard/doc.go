// Package shard keeps one range of the key space in memory and answers queries
// at every version that is not yet folded.
//
// # Nouns
//
// A [Shard] is one goroutine and the state that it owns. Its mailbox has two lanes: the sequencer
// sends work in log order and blocks while the work lane is full; a query is refused when the query lane
// is full. The goroutine does work in small slices. Between slices it answers waiting queries for at most half as long as the
// slices took, because the callers that get the answers need the processor too.
//
// A query for accounts by their keys skips the mailbox while the goroutine is idle: the caller takes the read lock of the
// state and reads the accounts itself. It does not copy their data, which never changes and which the garbage collector
// frees. Only the goroutine blocks on that lock; a caller that finds it locked enqueues a query.
//
// The accounts are a versioned map in two layers. The base (package packed) has the value of every key at
// the newest folded version. The overlay has every newer value. A read at version V returns the newest value at or
// below V in the overlay, else the value of the base, so later writes do not change its result. The facts of the
// mints, which are few, are a second versioned map: one B-tree ordered by key and version.
//
// Blocks and transactions are not in a shard; package txstore stores them.
//
// An index lists the members of a group: the accounts of a program, or the token accounts of a wallet, of a delegate
// and, after [Shard.IndexMints], of a mint. The base and the overlay each have their own. An index may list accounts that are
// not in the group, because they have left it or because two groups have the same hash, so a query checks each account at its
// version.
//
// A [Frozen] copy is the content of a shard at one version, which a snapshot walks on another
// goroutine. It shares the nodes of the trees, which the shard copies before its next write to them, and pins the
// records until it is released. [Content] is the opposite: what a new shard is filled with.
//
// # Order
//
// Work is applied in the order in which it is sent. The version of each block, rollback and base state is
// greater than all before. [Shard.Fold] moves all values up to a version into the base; reads below that
// version then fail with [ErrFolded], so the sequencer folds a version only when no reader needs
// an older one. [Shard.Freeze] is queued with the work, so all shards freeze at the same point of the log.
// [Shard.Restore] comes before all work; its version counts as folded.
//
// The answer to a query never changes: values of the overlay are replaced, never changed in
// place, and an account of the base is unpacked for each query.
// A shard does no I/O and does not know other shards; [Of] says which shard owns a key.
package shard
