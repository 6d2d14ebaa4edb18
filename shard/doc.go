// Package shard keeps one range of the key space in memory and answers questions
// about it at any version that is still held.
//
// # Nouns
//
// A [Shard] is one goroutine and the trees it alone touches. Its mailbox has two lanes:
// work, which comes from the sequencer in log order and waits for room, and queries,
// which are refused when their lane is full. Work is done in small slices, and the
// queries that arrived meanwhile are served between them; only finding out what a block or
// a rollback touches, and sorting that, is done in one.
//
// A table is one versioned map in two layers. The base is a B-tree with the value of
// every key at the newest folded version. The overlay is a small B-tree of (key, version)
// with everything newer. A read at version V takes the newest value at or below V in the
// overlay, else the base, so it does not matter what was applied since.
//
// An index lists the members of a group: the accounts of a program, the token accounts of
// a wallet. It covers both layers and may list too much: every entry is checked
// against the account as read at the asked version.
//
// # Order
//
// Work is applied in the order it is sent. Each block, rollback and base state has a
// version greater than all before. [Shard.Fold] moves everything up to a version into the
// base; reads below it are refused with [ErrFolded] from then on, so the sequencer folds
// a version only when nobody can still be reading below it.
//
// Values are replaced, never changed in place: what a query was answered stays true.
// A shard does no I/O and knows nothing of other shards; keys belong to it by [Of].
package shard
