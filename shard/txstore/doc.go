// Package txstore stores the transactions of blocks packed, and finds them by signature.
//
// # Nouns
//
// Most of the memory of a transaction is its account keys, and most keys occur in many
// transactions. So a [Block] has its transactions packed: one array of records and one array of key numbers, 4
// bytes each. The keys themselves are stored once for all blocks of a [Store]. A reader gets unpacked
// transactions and never sees a record.
//
// Blocks and transactions never change, so they have no versions: a transaction is visible at a version of
// the ledger if its block is on the chain of that version, which the caller of [Store.Transaction] decides. Blocks of
// several branches may have a transaction with the same signature.
//
// There is no index by key: it would have to follow each block that comes and goes. A [Block] has a Bloom filter of the
// keys that it names, so a search for the transactions of a key walks over the blocks of a chain and skips those that do
// not name it. This is right on every chain.
//
// # Lifetime and order
//
// A block is packed, then added, and then published; it is removed when no reader has a chain with it
// any more. Remove makes its transactions unfindable. The keys of a block are freed after the garbage collector
// has found the block unreachable, so snapshots and readers that still have it need not be counted.
//
// Any goroutine may call the methods of a Store. A Block is immutable.
package txstore
