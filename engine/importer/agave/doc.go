// Package agave reads the snapshot archives that Agave validators write: a tar, mostly packed with
// zstd, of the bank at one slot and of every account file ("storage") that is alive there.
//
// # Nouns
//
// An [Archive] is one such file. Its manifest, snapshots/SLOT/SLOT, comes before the storages and
// tells of the bank: slot, blockhash, height, capitalization, and how many bytes of each storage
// are in use. A storage, accounts/SLOT.NUMBER, is an append-vec: account records one after the other.
//
// # Rules
//
// Everything is streamed: what is held is the manifest's list of storages (some 40 bytes each, at most
// maxStorages), a buffer with room for one account (maxDataBytes), and what zstd looks back to (maxWindowBytes).
//
// Records come in the order of the archive, which says nothing about age. Package importer decides which of
// several records of one account is the newest.
//
// Records end where the manifest says that the storage's used part ends; what a file has after
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
