// Package fill fetches accounts on demand. A source may show only accounts that change. When a query asks for an
// account that no block has written yet, the Filler fetches it once from the source's node, the sequencer applies it as
// base state, and from then on it is followed like any other. A stream that is asked for the headers of data alone does not tell
// whether the amounts of a mint are scaled: such mints are fetched without a query, each until it is answered.
//
// # Nouns
//
// A pending key is an account that queries wait for; all queries for one key wait for one
// fetch. An [Answer] has the accounts that the node returned for some keys, as of one slot. The recent writes are the
// keys that the newest blocks of the chain wrote. The negative cache has keys that do not exist.
//
// # When an answer is valid
//
// The node is asked at commitment finalized. An answer of slot F is applied after the chain here is final up to F, so
// no rollback can undo it. It is base state of slot F, and newer blocks win by the rules of
// base state. These rules do not cover one case: a block that closes an account which is not held leaves
// no trace. So the sequencer reports the keys that each block writes ([Filler.Appended]). For a key that
// was not held there are three cases:
//   - A block after F left the account alive. Then it is held now, or a filter excludes it.
//   - Blocks after F only closed the account. Then it does not exist since the last of them.
//   - No block after F wrote the account. Then the answer is applied.
//
// If the writes after F are no longer known (F is below the snapshot of a restart, or the blocks wrote too many keys),
// the node is asked again. The negative cache keeps a key that does not exist for a short time, with the
// slot since which it does not exist: a view at or past that slot gets "not found". If an account was applied and is still
// not held, a filter excludes it: the query gets "not indexed", and the cache keeps that too. A rollback clears the cache.
//
// An account of which something is unknown, or too old, is completed the same way. A block that shows only lamports may have changed the other
// fields, so the answer must not be older than the block that had written the account when the query
// came. Until that block is final, queries get the account with its known fields. Accounts that are wanted ([Filler.Want]) are completed without a query: those
// of which a subscriber is to be told the data. So is the data of a sysvar that is too old: no block tells that the runtime changed it.
//
// # Ownership and order
//
// The caller of [Filler.Run] owns the goroutines that fetch. Queries come from any goroutine. Only the sequencer's goroutine
// calls Begin, Appended, RolledBack and Learn. It takes answers from [Filler.Answers] between two
// events, makes the result of Learn its next record, and passes the version of that record to Answer.Done. A query
// is answered from the state after that version is visible.
package fill
