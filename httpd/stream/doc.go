// Package stream is the WebSocket side of the node: it tells every account update to
// everybody who wants to know, on /api/ws/accounts.
//
// # Nouns
//
// An emission is what one block, or the undoing of some, means at one commitment level: the
// account updates in order, finished as WebSocket frames. Each frame is encoded at most once
// a form, however many read it.
//
// A subscriber is one connection: what it wants to hear (its wants), and an outbox of
// finished frames that wait for its socket.
//
// The [Hub] is the registry of subscribers and the place where publications become
// emissions: one for the processed level at once, and the same updates again when their
// block is confirmed and finalized.
//
// # Order
//
// Publications arrive in log order from one goroutine. Under the hub's lock they become
// emissions and land in outboxes; every answer to a client that names a slot or a seq is
// put into the outbox under the same lock. So what a client reads is one consistent order.
//
// # Ownership
//
// Each connection has two goroutines. The reader owns the reading half and handles what the
// client says, including questions to the ledger. The writer is the only one that ever
// writes to the socket after the handshake, control frames included. [Hub.Publish] only appends to outboxes and never waits for either: an outbox that
// is full belongs to a slow consumer, which is disconnected with close code 4008.
//
// # Limits of this package
//
// There is no history behind the newest update: resume succeeds when nothing was missed
// and says resync_required otherwise. Conflation is not offered and asking for it is refused.
package stream
