// Package extsort sorts rows on disk and keeps the newest of each key: rows come in any order, however
// many there are, and the newest of each key go out in the order of keys, in bounded memory.
//
// # Nouns
//
// A [Row] is a value of a key with a rank: slot, then version, then the order in which rows were added.
// The row of the highest rank is the newest, and the others of its key are dropped. The package does not look at
// values: a deletion is a row like any other, so it wins over what is older, whichever came first.
//
// A partition is a file of the rows whose keys begin with the same bytes. A [Sorter] adds rows to 256 of
// them by the first byte. A partition that fits into memory is sorted there; a larger one is first split into 256
// others by the next byte.
//
// # Bounds
//
// A Sorter has a buffer of bufferBytes for each partition that is written. Each caller of EachNewest takes MemoryBytes at most for
// rows, half as much again for their order, and 256 buffers for each partition that it splits. On disk the
// rows lie once, and those of one partition twice while it is split.
//
// # Lifetime
//
// [New] makes a directory that belongs to the Sorter alone, and [Sorter.Close] removes its files. Add is for
// one goroutine. When all was added, EachNewest may be called by several, each with its own range of
// first bytes, and once for each range: it removes what it has read.
package extsort
