// Package rpc is the second door of the node: it answers Solana's JSON-RPC over HTTP POST and WebSockets from the same ledger as REST, and passes
// to other nodes what the ledger cannot answer. Its reference is the public specification solana-rpc/specs and, where that is silent, Agave.
//
// # Nouns
//
// A [Door] answers exchanges, which httpd has counted and checked. A call is one request of JSON-RPC: a method, its parameters, an id. A
// batch is several calls in one exchange. A method is one row of the table: how many parameters it takes, and what answers it. An upstream is
// another node that answers calls whole.
//
// A subscription is a topic of the hub in package stream, which all share who ask for the same: it is encoded once for all of them. The hub has the
// sockets, their budgets and what waits for them; a door answers the messages. Who says resumeFrom is told first what it has missed of the topic, by
// the hub, in the words of the topic and for itself alone.
//
// # Order
//
// The body is parsed once. Each call of a batch counts against the windows of the client, all of them or none before the first is answered. Calls
// are answered one after the other into one buffer, in their order. Then upstreams are asked those that they have to answer, some at a time, whose
// answers take their places when all are there. A call without an id is a notification: it gets no answer, and since nothing here changes the ledger,
// it is not looked at.
//
// A long list of the accounts of a program is the one answer that may go on after its call: what has no room in memory is read while it is sent, and an
// error ends the connection. Nothing follows it, so it is the answer to a call that is alone.
//
// A call is answered from one version: the first question fixes the head, and further ones are asked at it. minContextSlot is checked with
// that head, for every method that takes a configuration. A call is answered by one node whole: either from that version or by an upstream.
//
// # Ownership
//
// Parsed values belong to the parser of the exchange and are used until it ends. The buffer of the answer is that of the exchange.
// An upstream is given a request made anew from what was read of the call, with an id of our own and the parameters as they were sent. Its answer is
// made that of the client in the same bytes, which are taken from the memory of the exchange.
package rpc
