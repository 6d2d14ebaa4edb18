// Package proc runs the ledgerd that is measured, as a process of its own.
//
// # Nouns
//
// A server is one process of ledgerd with a data directory and free ports of its own. Its
// standard input is the feed: whoever holds the server writes an event file there (package
// feed). Usage is what the kernel has counted of a process; metrics are what the server counts
// of itself, as its operators' listener shows them.
//
// # Lifetime
//
// Start returns once the process listens, Ready once it answers questions. Stop ends it as
// an operator does and Kill as a crash does. Both return when the process is gone, and the
// first of them removes the data directory, unless it was named by the caller.
package proc
