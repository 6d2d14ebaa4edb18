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
// Records come in the order of the archive. Of several records of one account package importer takes that of the highest slot. A slot
// has one storage, and within a storage the record that comes later was written later: the write versions of records, which say the same,
// are all 0 since Agave 2.0 (anza-xyz/agave#476). Of two storages of a slot nothing says which is the newer, so they are refused, as Agave
// itself does (runtime/src/snapshot_utils/snapshot_storage_rebuilder.rs).
//
// Records that the writer marked as obsolete are left out of archives (accounts-db/src/account_storage_reader.rs). A writer that leaves out
// the record of a closing, too, while an older storage still has the account revives it (anza-xyz/agave#7597, #9496): the sum of all
// lamports then is not the bank's, which package importer checks.
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
