// Package feed makes a ledger up and writes it as a binary event file, such as a ledgerd reads
// from its standard input.
//
// # The ledger
//
// It begins with base state of N accounts. Then come blocks of U updates each, of U accounts:
// the N accounts take turns, in the order of their index. An account's lamports are the slot
// that updated it last, so that the shortest frame tells which block it is from. Block times
// are when the block was due. A block is confirmed by the next one and finalized some blocks
// later.
//
// Everything follows from the configuration and the slot: keys, order and content. So whoever
// knows the configuration knows which frames a subscriber must get.
//
// # Time
//
// A feed is written block by block, by hand (Block) or at a pace (Pace). It remembers when each
// block was due: by hand, when its writing began; at a pace, by the clock alone, however late
// the reader of the feed lets it be written. Latencies count from there.
package feed
