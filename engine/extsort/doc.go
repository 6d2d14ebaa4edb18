// Package extsort sorts rows on disk and keeps the newest row of each key, in bounded memory: any number of rows is
// added in any order, and the newest row of each key is visited in the order of keys.
//
// # Nouns
//
// A [Row] is a value of a key with a rank: slot, then version, then the order in which rows were added.
// The row of the highest rank is the newest, and the others of its key are dropped. The package does not look at
// values: a deletion is a row like any other, so it replaces older rows, whichever was added first.
//
// A [Spool] is a file of rows. A [Sorter] adds rows to 256 spools by the first byte of their keys, the partitions. A
// partition that fits into memory is sorted there; a larger one is first split into 256 others by the next byte.
//
// # Bounds
//
// A Spool that is written has a buffer of bufferBytes. Each call of EachNewest takes at most the memoryBytes of New for rows
// and what sorts them, and 256 buffers for each partition that it splits. Each row is on disk once, and the rows of one
// partition twice while it is split.
//
// # Lifetime
//
// [New] makes a directory that belongs to the Sorter alone, and [Sorter.Close] removes its files; after a crash the next
// New removes them. One goroutine calls Add. After the last Add, several goroutines may call EachNewest, each with its
// own range of first bytes and once for each range, since EachNewest removes the rows.
package extsort
