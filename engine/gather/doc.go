// Package gather finds, among rows that come in any order, the newest of each key, and hands these
// out in the order of keys: in bounded memory, however many there are.
//
// # Nouns
//
// A [Row] is a value of a key with a rank: slot, then version, then when it was added. The row of
// the highest rank is the newest; the others of its key are as if they never were. What a row means,
// a deletion too, is its value's business: a deletion is a row like any other, so it wins over what is older
// whatever came first.
//
// A pile is the rows whose keys begin alike, in a file. Rows are added to 256 piles by their first
// byte. A pile that fits the memory is sorted there; a larger one is spread over 256 others by the
// next byte first.
//
// # Bounds
//
// Adding takes 256 buffers of bufferBytes. Each caller of Newest takes MemoryBytes at most for rows, and
// half as much again for their order; while it spreads a pile, 257 buffers instead. On disk the rows
// lie once, and those of one pile twice while it is spread.
//
// # Lifetime
//
// [New] makes a directory that belongs to the gathering alone, and [Gathering.Close] removes it. Add is for
// one goroutine; when all was added, Newest may be called by several, each with its own range of
// first bytes, and reads each pile once.
package gather
