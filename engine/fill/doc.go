// Package fill fetches accounts on demand. A source may show only what changes: an account that somebody
// asks for and that no block has touched yet is then fetched from the source's node once, learned as base
// state, and from there on followed like any other.
//
// # Nouns
//
// A pending key is an account that a question waits for; all questions about one key wait for one
// fetch. An [Answer] is what the node said of some keys, as of one slot. The touched keys are what the newest
// blocks of the chain wrote. The negative cache holds keys that do not exist.
//
// # When an answer is good
//
// The node is asked at finalized level. Its answer of slot F is learned when the chain here is final up to F, so
// no rollback reaches what it says. It is base state of slot F, and newer blocks win by the rules of
// base state. One thing those rules do not cover: a block that closes an account which is not held leaves
// no trace. So the sequencer reports the keys that each block writes ([Filler.Appended]), and
// of a key that was not held
//   - a block after F left it alive: the state tells, as the account is held now or a filter keeps it out;
//   - blocks after F only closed it: it does not exist since the last of them;
//   - no block after F wrote it: it is as the answer says.
//
// Where blocks after F are not known any more (F lies before a restart's snapshot, or too many keys were
// written), the node is asked again. What does not exist is remembered for a short while, with the
// slot since when: a view at or past that slot is answered "not found". What was learned and is still
// not held is kept out by a filter: it is "not indexed", and remembered likewise. A rollback clears this cache.
//
// An account of which some fields are unknown is completed the same way, from an answer that is not older than the block
// that had written the account when it was first asked for: a block that shows lamports alone may
// have changed the rest. Until that block is final the account is answered as it is known.
//
// # Ownership and order
//
// The caller of [Filler.Run] owns the goroutines that fetch. Questions come from any goroutine. Begin, Appended, RolledBack
// and Learn belong to the sequencer's goroutine, which takes answers from [Filler.Answers] between two
// events: what Learn returns has to become the next record, and Answer.Done tells its version. A question
// is answered only when that version is visible, and from the state like all others.
package fill
