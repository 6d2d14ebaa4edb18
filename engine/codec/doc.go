// Package codec writes and reads events, records, accounts and mints as bytes: for the log,
// snapshots, replicas and event files. It also reads transactions in the ledger's own wire format.
// The layouts stand over the functions that write them, in these terms:
//
//	u8        one byte
//	number    unsigned, 7 bits a byte, least significant first, high bit set on all but
//	          the last byte (LEB128); never longer than needed
//	signed    a number holding the zigzag of a signed one: 0, -1, 1, -2 as 0, 1, 2, 3
//	key       32 bytes; also hashes and, as 64 bytes, signatures
//	flags     u8, bits named from the lowest; a bit without a name is 0
//	[x]       present as the flags say
//	x × n     n items, one after the other
//
// An event or record starts with the format version (u8) and its kind (u8). It is written in the
// lowest version that can express it:
//
//	events   2 the errors of transactions, 3 account data, 4 accounts that are only read
//	records  2 the wallet before an update, 3 that a block became final by depth,
//	         4 a horizon and the level of base state, 5 the errors of transactions,
//	         6 account data, 7 accounts that are only read
//
// So a record keeps its bytes when a newer program reads it and writes it again, and an older
// program refuses only the records that it cannot understand.
//
// Each value has exactly one encoding, so that equal bytes mean equal values: decoders refuse
// everything the encoders would not write. What a value marks as unknown is not written.
//
// Decoders copy: nothing they return refers to their input. They never allocate more
// than a few times the size of the input, whatever its counts say. What lives as long as
// the block (transactions, their keys, writes) is allocated in one piece each; token,
// mint and provenance facts and data, which outlive it one by one, are allocated one by one.
package codec
