// Package bench loads a ledgerd server and measures what comes back.
//
// # Nouns
//
// A scenario is one kind of load with one question, such as how many frames 500 subscribers
// are handed in a second. It runs against a server that it starts itself (package target),
// fed with blocks it makes itself (package feed), so that it knows when each update was sent
// and what is true of the ledger. Where a scenario has peers (package peer), they do the
// same work in the same run, in turns with ledgerd: on a shared machine only ratios within
// one run mean anything.
//
// A result is what a scenario found: a row for each subject, a figure for each quantity, with
// the spread over the rounds.
//
// # Rules
//
// Server and load are processes of their own, and the server's CPU time comes from the
// kernel's accounting. Latency counts from when the work was due, not from when the
// generator came round to it. The package speaks HTTP and WebSocket only: what it knows of
// the server is what any client knows.
package bench
