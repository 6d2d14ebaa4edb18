// Package arena stores values without pointers and names each by a number of 32 bits, so that
// millions of them take little memory and the garbage collector has nothing to scan.
//
// [Chunks] hold values of one type. They never move: a copy of the slice of chunks stays readable while
// the owner adds more. [Slots] says which of them are taken. A [HashTable] finds a value by the hash of
// its key. [Keys] are public keys that many records name, each stored once and counted.
//
// Nothing here has a lock: each value has one owner, who alone writes. Others read only copies of
// chunks, and only what was written before they got the copy.
package arena
