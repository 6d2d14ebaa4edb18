// Package client asks a ledgerd node over REST and follows its stream without a gap.
//
// # Nouns
//
// A [Client] is one node, or one cluster behind a balancer, and what it last said of the caller's
// budget. Each of its calls returns an [Answer]: the record and the version of the ledger that it was
// computed from. An error of the node is a [*StatusError].
//
// A stream is one subscription that outlives its connections: [Client.Stream] connects, subscribes,
// resumes and connects again until its context ends, and tells a [Handler] what happens.
//
// # Order
//
// A handler is called by one goroutine, the one that called Stream, in the order of the ledger. It is told a
// [Start] first: all that it was told before is void, and what follows is complete from there on. Members of
// a snapshot come right after it, before anything that happened later. Every update that has a number of
// its own is told once, whatever happened to connections in between. A [Rollback] is told before
// the accounts that it restores.
//
// A subscription may have 10,000 names, as many as a node takes on one connection. They are said in several
// messages, each once the one before was answered, so a node has a snapshot of 1,250 names to make at once. A
// handler is then told the snapshot in parts, and between them what happened to accounts that were named by then; of
// an account that was not, nothing is told before its part. Whoever keeps the newest state of each account has a
// complete one from the handler's Ready on. Names that are added while a stream runs, by [More], are told in the same way, and Ready
// comes once more.
//
// # Module
//
// The package is a part of the module ledgerd, and needs fasthttp/websocket alone. A program that uses it has in its go.mod the seven modules that it
// is compiled from, and in its go.sum these and no others: the go command leaves out what the rest of ledgerd needs, 49 modules that only go list -m
// all shows. As a module of its own it would come with as many, and go build, go test, go vet and staticcheck of ./... would leave it out.
//
// # Integers
//
// All amounts and numbers are exact up to 2^64-1. Amounts of tokens are decimal strings, as the node
// writes them.
package client
