// Package bench loads a ledgerd server and measures what comes back.
//
// # Nouns
//
// A scenario is one kind of load with one question, such as how many frames 500 subscribers
// are handed in a second. It runs against a server that it starts itself (package proc),
// fed with blocks it makes itself (package feed), so that it knows when each update was sent
// and what is true of the ledger. Where a scenario has peers (package peer), they do the
// same work in the same run, in turns with ledgerd: on a shared machine only ratios within
// one run mean anything.
//
// A live server is one that somebody else has started. Scenarios that need neither to feed a
// server nor to know its ledger run against that too: what there is to ask for is learned from
// it, answers are checked for being of what was asked, and no goal is held against its speed.
// The others are left out, and say why (Scenario.Own). A server that limits its clients is asked
// no more once it has said so.
//
// A load is what asks over REST: some threads, each with many connections. It asks as fast as it
// is answered or at a rate, for a phase or for as long as it is wanted. What is due at a rate and
// never sent is counted.
//
// A result is what a scenario found: a row for each subject, a figure for each quantity, with
// the spread over the rounds. A report is the results of a run. Results are the newest of each
// scenario, kept in files, from which a page in Markdown is made.
//
// # Rules
//
// Server and load are processes of their own, and the server's CPU time comes from the
// kernel's accounting. Latency counts from when the work was due, not from when the
// generator came round to it. The package speaks HTTP and WebSocket only: what it knows of
// the server is what any client knows, and what its operators' listener tells. Where nobody can
// tell what a live server takes of its processors, that is left out.
package bench
