// Package proc starts the processes that benchmarks, tests and clusters on one machine are made of.
//
// # Nouns
//
// A process is a program with all that it starts itself, and the transcripts of what it says. A server is one
// process of ledgerd with a data directory and free ports of its own; its
// standard input is the feed: whoever holds the server writes an event file there (package
// feed). NATS is a group of nats-servers. Usage is what the kernel has counted of a process; metrics are what a server
// of ledgerd counts of itself, as its operators' listener shows them.
//
// # Lifetime
//
// Launch returns when a process runs, Start once a server listens, its Ready once it answers questions, and StartNATS when all
// servers hold their streams. Stop ends a process as an operator does and Kill as a crash does; both return when it is gone.
// The first of them on a server removes the data directory, unless it was named by the caller. All end with the context
// that they were started with, and with the process that started them.
package proc
