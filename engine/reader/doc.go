// Package reader answers the queries of one node. It reads shards and blocks and changes nothing.
//
// A query reads the newest head of the board once, or gets one in [ledger.Query], and asks the shards at that head's
// version. So it is answered from one block, whatever is applied, undone or folded meanwhile. Any goroutine may
// ask a [Reader]; every query returns within its wait for a slot and Config.Deadline.
//
// Whether something is missing from the ledger or only not held is judged by the [Coverage] of the node.
package reader
