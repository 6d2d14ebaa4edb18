// Package peer runs other services that tell everybody everything, that answer one question at
// a time, or that keep data, to be measured beside ledgerd in the same run.
//
// # Nouns
//
// A peer is a kind of service. raw writes blocks of bytes to sockets and nothing else, which
// is the ceiling on a machine. nats is nats-server, fed by its Go client and read in its text
// protocol.
//
// A server is a running one, always a process of its own: either the program that measures, started again with other
// arguments ([Serve]), or a program that must be there ([proc.AbsentError] says where it was looked for).
//
// # Rules
//
// What is published is a batch: the same messages every time. A subscriber receives all batches
// published after its Dial returned. No server drops anybody: raw waits for a full queue, and
// nats-server may hold a gigabyte for each of its clients; so whoever publishes must not go ahead
// of the slowest subscriber without bound.
//
// # Services that answer
//
// RESTPeers are asked for an account at a time, all with the same fields. bare and nginx give
// everybody the one answer that ledgerd gave to somebody; nethttp and webdis look it up. About says what a
// peer does less or more than ledgerd, and stands under the table of results.
package peer
