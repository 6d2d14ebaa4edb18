// Package agave reads the snapshot archives that Agave validators write: a tar, mostly packed with
// zstd, of the bank at one slot and of every account file ("storage") that is alive there.
//
// # Nouns
//
// An [Archive] is one such file. Its manifest, snapshots/SLOT/SLOT, comes before the storages and
// tells of the [Bank]: slot, blockhash, height, capitalization, and how many bytes of each storage
// are in use. A storage, accounts/SLOT.ID, is an append-vec: account records one behind the other.
// A [Chunk] is some of its records, as base state at the storage's slot.
//
// # Rules
//
// Everything is streamed: what is held is the manifest's list of storages (32 bytes each, at most
// maxStorages), one chunk, the data of one token account, and what zstd looks back to (maxWindowBytes).
//
// Chunks come in the order of the archive, which says nothing about age. Of several records of one
// account that of the highest slot is the account; of the same slot that of the higher write
// version, else the later one. A record of 0 lamports is a deletion. Who reads has to decide that.
//
// Records end where the manifest says that the storage's used part ends; what a file has behind
// that is garbage. Nothing is guessed: a manifest that cannot be followed to its end, a storage it
// does not name, one that is missing or shorter than it says, and a record that does not fit are
// errors of one line that say where.
//
// # Sources
//
// The layout is that of Agave's snapshot version 1.2.0: snapshots/src/archive.rs (order of the
// entries), runtime/src/serde_snapshot.rs (DeserializableVersionedBank, AccountsDbFields,
// ExtraFieldsToDeserialize) with the structures of solana-sdk it names, in bincode with integers of
// fixed width, and accounts-db/src/append_vec.rs. Firedancer's fd_ssmanifest_parser.c reads the
// same fields in the same order.
package agave
