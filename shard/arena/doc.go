// Package arena stores values without pointers and identifies each by a number of 32 bits, so
// millions of them take little memory and the garbage collector does not scan them.
//
// [Chunks] have values of one type, which never move: a copy of the slice of chunks stays readable while
// the owner adds values. A [Pool] allocates values of chunks. A [HashTable] finds a number by the hash of
// a key. [Keys] interns public keys: each is stored once and counts its references.
//
// Nothing here has a lock: each value has one owner, and only the owner writes. Another goroutine reads only a copy
// of chunks, and only values that were written before the copy was made.
package arena
