// Package file reads recorded ledgers: blocks as a node answers getBlock, accounts as a
// node answers getAccountInfo, our own event lines, and binary event files, compressed
// or not. What a file holds is told from its content, never from its name.
//
// # Nouns
//
// An input is one path of the specification, or one file of a folder. Its content is
// unpacked and recognized; a reader for that form turns it into events; the sink hands
// them to the sequencer.
//
// # Order
//
// Inputs are read one after the other, in the order given, a folder in name order. The
// events of one input come in the order of the file. After the first error nothing more
// is emitted; what was emitted before it stands.
//
// # Resuming
//
// Run starts at the front of the input again. Blocks below the resume point are read and
// left out; the one at it is emitted, so that the sequencer can see whether the input is
// the ledger it holds. Left out too is the base state in front of the first block at or
// past the resume point: it was ingested before that block, and a second time it could
// fill in what the blocks have made unknown since.
package file
