// Package stream is the WebSocket side of the node: it tells every account update to
// everybody who wants to know, on /api/ws/accounts.
//
// # Nouns
//
// An emission is what one block, or the undoing of some, means at one commitment level: the
// account updates in order.
//
// A ring holds the newest frames of one level in one form: each emission is encoded into it
// once, for all who want everything. Such a subscriber is a place in the ring and nothing
// more: one write hands it all frames up to the head, or 64 KiB of them.
//
// A subscriber is one connection: what it wants to hear (its wants), a place in a ring if it
// wants everything, and an outbox of what else it is told: answers, and the updates of
// accounts it named. Those are found through an index, and encoded once however many named
// them.
//
// The [Hub] is the registry of subscribers and the place where publications become
// emissions: one for the processed level at once, and the same updates again when their
// block is confirmed and finalized.
//
// # Order
//
// Publications arrive in log order from one goroutine. Under the hub's lock they become
// emissions and land in rings and outboxes; every answer to a client is put into the outbox
// under the same lock, and carries the place in the ring that it belongs behind. So what a
// client reads is one consistent order.
//
// # Resume
//
// The newest emissions of each level are kept, whoever listens. A client that comes back with
// a seq is told what it missed from them, by its own writer as fast as its socket takes it,
// and goes on behind that. Who is so slow that none of them is kept any more before it has been
// told them is a slow consumer. What lies before them comes from the log, if there is one
// (Config.History). Every update with a number of its own is told once; rollback and
// slot_end frames, and restored accounts that share a number, carry the last number before
// them, so those that carry the very seq are told again rather than perhaps never.
//
// # Conflation
//
// With overflow=conflate who falls behind is told {"type":"gap","from_seq":F,"to_seq":T} instead
// of being disconnected: of what lies after F and up to T only the newest state of each
// account follows, in log order, and of slot_end and rollback frames only the newest. Who
// follows a ring jumps when a quarter of it lies ahead, by a digest of the emissions that are
// kept, which all share; in an outbox that is full, states make room for newer ones of the
// same account. What is told after a gap is complete again. Answers that wait meanwhile come
// behind the gap they fell into.
//
// # Ownership
//
// A connection is handed over right after its handshake, so that nothing of the request stays
// with it. Each has a goroutine, the reader, which owns the reading half. It waits for what the
// client says and has another one hear it, questions to the ledger included, which takes its
// larger stack along when it goes. The writer is the only one that ever writes to the socket
// after the handshake, control frames included. It is a goroutine too, but runs only while there
// is something to write: whoever has something calls it, and it goes when nothing is left, having
// set an alarm for what is due next. So who is idle costs one small stack and one timer, about
// 8 KiB in all with ten keys named (BenchmarkIdle).
//
// [Hub.Publish] only appends to rings and outboxes, calls writers that are not there, and never
// waits for anybody: whom the ring laps or whose outbox is full is a slow consumer, which is
// disconnected with close code 4008 unless it asked for conflation. Who takes no byte at all for
// Config.WriteTimeout is reset: there is no boundary of frames to put a close frame at.
//
// One writer per connection is enough: on two cores, readers included, 500 of them deliver
// 26 to 29 million frames or 3.6 to 4.1 GB a second, where bare writes of 64 KiB to as many
// sockets pass 3.5 to 3.7 GB (BenchmarkFirehose and BenchmarkRawSockets by turns, when writers
// still slept instead of going; measured by turns, that makes no difference). So fewer writers
// would gain nothing.
//
// # Limits of this package
//
// Without Config.History resume goes back as far as the newest emissions are kept in memory
// (Config.RecentBytes), and says resync_required behind that. Conflation too needs what was missed to be kept:
// who misses more is disconnected like anybody.
package stream
