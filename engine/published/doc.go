// Package published holds what clients of a node may see.
//
// # Nouns
//
// The [Board] has the newest published [ledger.Head], which queries are answered from, and says whether the node answers
// at all. The [History] knows from which records of the log older publications can be read back. A [Trail] computes
// the tips of all commitment levels from records.
//
// # Rules
//
// One goroutine at a time publishes, in log order, and only what is durable. Any goroutine may read. A node that
// fenced itself off publishes and answers nothing any more.
package published
