// Package txstore stores the transactions of blocks packed, and finds them by signature.
//
// # Nouns
//
// Most of the memory of a transaction is the keys that it names, and most of these are named by many
// others. So a [Block] has its transactions packed: one array of records and one array of key numbers, 4
// bytes each. The keys themselves are stored once for all blocks of a [Store]. A reader gets
// transactions that are unpacked for it and never sees a record.
//
// Blocks and transactions never change, so they have no versions: a transaction is visible at a version of
// the ledger if its block is on the chain there, which the reader knows ([Store.Transaction]). Blocks of
// several branches may have a transaction of one signature.
//
// # Lifetime and order
//
// A block is first packed, then added, and then published; it is removed when nobody reads a chain with it
// any more. Removing it makes its transactions unfindable, and its memory is freed when nobody can reach the
// block: a key is kept for as long as a snapshot or a reader has a block that names it. The garbage collector
// says when a block is gone, so readers need not be counted.
//
// All methods of a Store may be called by any goroutine. A Block is immutable.
package txstore
