// Package shard keeps one range of the key space in memory and answers questions
// about it at any version that is still held.
//
// # Nouns
//
// A [Shard] is one goroutine and the trees that are its own. Its mailbox has two lanes:
// work, which comes from the sequencer in log order and waits for room, and queries,
// which are refused when their lane is full. Work is done in small slices, and the
// queries that arrived meanwhile are served between them; only finding out what a block or
// a rollback touches, and sorting that, is done in one.
//
// While the goroutine waits, the asker for a single account looks it up in place: the state has a lock, and
// one user at a time. Only the goroutine waits for that lock; an asker that finds it taken enqueues a query.
//
// The accounts are one versioned map in two layers. The base has the value of every key at the newest
// folded version, packed into records without pointers. The overlay has everything newer, in a queue without
// pointers that a hash table leads into. A read at version V takes the newest value at or below V in the
// overlay, else the base, so it does not matter what was applied since. The facts of mints, of which there are
// few, are another versioned map, in one B-tree of (key, version).
//
// Blocks and transactions are stored beside the shards, by package txstore.
//
// An index lists the members of a group: the accounts of a program, the token accounts of
// a wallet. Each layer of the accounts has its own. The base's lists what is a member there; the
// overlay's may list too much, and what either lists is checked against the account as read
// at the asked version.
//
// A [Frozen] copy is what a shard held at one version, for a snapshot to walk on a goroutine
// of its own. The copy shares the trees' nodes, which the shard from then on copies before
// it writes to them, and pins the records, which are kept until it is released. [Content] is
// the same the other way round: what a new shard is filled with.
//
// # Order
//
// Work is applied in the order it is sent. Each block, rollback and base state has a
// version greater than all before. [Shard.Fold] moves everything up to a version into the
// base; reads below it are refused with [ErrFolded] from then on, so the sequencer folds
// a version only when nobody can still be reading below it. [Shard.Freeze] is sent like work
// and takes its turn among it, so that all shards freeze at one point of the log.
// [Shard.Restore] comes before all work; what is below its version counts as folded.
//
// What a query was answered stays true: values of the overlay are replaced, never changed in
// place, and an account of the base is unpacked for the one who asks.
// A shard does no I/O and knows nothing of other shards; keys belong to it by [Of].
package shard
