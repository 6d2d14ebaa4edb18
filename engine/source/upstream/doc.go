// Package upstream holds what every source that follows a live node has in common: figures
// about the way up there, told by cause.
//
// # Nouns
//
// [Stats] are the figures. The source reports what happens, in words and not in numbers: a
// connection opened, one was lost and why, a block was sealed, a gap was found, was filled, or
// cannot be, no block can be had though the node answers. [Snapshot] is what they were at one moment; [Show] has a set of metrics
// write it, and names each figure; [Stats.Trouble] is the sentence that health shows. A [Kind] is why something went wrong: there are few, they are
// fixed, and nothing that a node sends becomes one.
//
// # Ownership
//
// The zero Stats are ready. Any goroutine may report and read.
//
// Beside the hosts of several nodes that a person named, no figure ever holds an address, a token, or a text that came from the
// node.
//
// [TLSFiles] and [HeaderFiles] are the files by which a node is known, and by which it lets us in.
package upstream
