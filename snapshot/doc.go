// Package snapshot keeps the state of all shards at one record of the log in files that check
// themselves, so that a restart need not replay the log from its beginning.
//
// # Nouns
//
// A snapshot is the state after the record of the newest finalized block: every account,
// tombstones included, every mint fact, and facts about the chain ([Meta]). It is one
// file, snapshot-<slot>-<version>.state, together with the history files it names.
//
// A history file, history-<first slot>-<last slot>-<hash>.blocks, holds finalized blocks with
// their transactions. It never changes: each snapshot adds one with the blocks finalized
// since the one before, and refers to the older ones as long as retention needs them.
//
// A part is one range of keys as a shard hands it over to be written. Readers may ask for other
// ranges: a snapshot does not record how it was split when it was written.
//
// A chunk is the unit of both kinds of file: some hundred KiB of accounts, mints or blocks,
// compressed by itself, checked by itself. See format.go for the bytes.
//
// A [Store] is the directory with all of them.
//
// A run is a file of an [Archive], which holds finalized blocks apart from all snapshots, with an index of their signatures
// and of the keys that they name.
//
// # Rules
//
// A compressed stream does not detect all damage to itself: a stream that was cut between two
// frames decodes without an error, and the decoder reports a flipped bit only after it delivered the bytes before
// it. So the checksum of a chunk is checked before the chunk is decoded, the
// index holds the checksums, counts and keys of all chunks, and the footer holds the hash of
// the index. Every byte of a file is checked. Damage is a [*DamagedError].
//
// A file is written under a temporary name, synced, read back and decoded completely. Only after
// both files of a snapshot have passed are they renamed, the history file first, and the directory is synced
// after each. So after a crash at any moment each name belongs to a whole file, a snapshot has its history,
// and the older snapshots are untouched.
//
// Prune keeps the newest snapshots that pass their checks and removes what is older, oldest
// first: snapshots before the history files that only they need. Nothing newer than the oldest
// one kept is ever removed, damaged or not.
//
// All snapshots share a history file. If it is damaged, or the disk cannot read it, only its own blocks are lost: a start goes
// on without them, and later snapshots and Prune treat the file like an intact one. The newest history file of a snapshot must
// be whole, since it holds the block that the snapshot is of: otherwise an older snapshot is used, and the next snapshot writes
// the blocks again.
//
// # Lifetime
//
// Write and Prune exclude each other; any goroutine may call the other methods at any
// time, and they wait for no lock. A [Snapshot] holds no file open between calls, so it need not be
// closed. Every goroutine started here has ended when the call that started it returns.
package snapshot
