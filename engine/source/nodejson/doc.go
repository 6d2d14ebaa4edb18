// Package nodejson reads the JSON in which a node of the ledger tells blocks and accounts: the
// results of getBlock and getAccountInfo, in all their encodings. Where the JSON comes from, a file
// or a node's answer, is not its business.
//
// # Nouns
//
// A [Block] becomes a ledger.Block: its account writes are what the metadata of its transactions
// shows, folded to one write of an account, then its rewards. An [Account] becomes a
// ledger.AccountWrite, with the token facts of its data. What is absent or null is unknown.
//
// Transactions and metadata cannot differ in number, as they can where a validator stores them apart: in an answer each transaction stands
// with its own metadata, or with null. A block whose node has not kept some is told as what it is, [Block.Untold].
//
// # Errors
//
// They are one line about a field, and never quote the input.
package nodejson
