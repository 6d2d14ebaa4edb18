// Package stream is the WebSocket side of the node: it delivers every account update to all
// subscribers that want it, on /api/ws/accounts.
//
// # Nouns
//
// An emission is what one block, or the undoing of some, means at one commitment level: the
// account updates in order, between an opening and an ending.
//
// A ring holds the newest frames of one level in one form: each emission is encoded into it
// once, for all that want everything. Such a subscriber is a position in the ring and nothing
// more: one write carries all frames up to the head, or 64 KiB of them.
//
// A connection is a socket with a reader, a writer, a position in a ring if it follows one, and an outbox for all else that it is
// sent: answers, and updates of the accounts that its client named. Its speaker handles and makes the messages.
//
// A subscriber is the speaker of a connection to /api/ws/accounts. It holds which updates of a level the client wants.
// Subscribers that name accounts are found through an index, and an update is encoded once for all of them. A name is
// an account's key, a program or a wallet; a wallet names its token accounts, now or before the block, and
// itself.
//
// A topic is a subscription that several sockets of the JSON-RPC door share: to the updates of an account or of a program's
// accounts, to the block of a transaction, or to the blocks of a level. A notification is encoded once, by the function of the
// socket that subscribed first, and waits in the outboxes of the topic's watchers.
//
// A form is how updates are written: basic, extended, or extended with the facts of token accounts, the data of accounts, or both.
// A frame with data may be as long as the data: then it has a block of its ring to itself, and is written without a copy.
// The decimals of a token account are those of its mint: they are read from the ledger once for each block, without
// the hub's lock and only when a subscriber wants them, and then kept with the block.
//
// The [Hub] is the registry of connections and subscribers. It turns publications into emissions: one for the
// processed level at once, and the same updates again when their block is confirmed and
// finalized. The frames themselves are the business of package frame.
//
// # Order
//
// Publications arrive in log order from one goroutine, which turns them into emissions and appends
// those to rings and outboxes under the hub's lock. Every answer to a client is put into its
// outbox under the same lock, with the position in the ring that it comes after. So what a
// client reads is one consistent order.
//
// # Resume
//
// The newest emissions of each level are kept, whether or not there are subscribers. A client that
// comes back with a seq is sent what it missed from them, its backlog, by its own writer as fast as its
// socket takes it, and goes on after that. A client is a slow consumer if its backlog is not kept any
// more before it was sent. What is published while a snapshot is read is a backlog too, which follows
// the snapshot. Emissions before the kept ones come from the log, if there is one
// (Config.History): clients take turns at reading it, part by part. A client that waits for its turn gets pings, and heartbeats that
// say which seq it has reached. Every update with a number of
// its own is sent once; rollback and slot_end frames, and restored accounts that share a number,
// carry the last number before them, so those that carry exactly the client's seq are sent again rather than
// perhaps never. A socket that resumes a topic is sent a backlog of that topic, encoded for it alone, and then the same as all watchers.
// The close frame of a socket that is too slow names a seq from which all of its topics can be resumed: one below the first that it
// was not sent of any topic, and not above the newest seq of any of their levels.
//
// # Conflation
//
// With overflow=conflate a client that falls behind is sent {"type":"gap","from_seq":F,"to_seq":T}
// instead of being disconnected: of the updates after F and up to T only the newest state of each
// account follows, in log order, and of slot_end and rollback frames only the newest. An account that ceased to match a name of the
// client, and changed again, is among them. This is a digest: a backlog of the kept emissions without
// their stale states, which are the same for all clients that jump at one head. The writer makes it, and the client pays for it. A
// follower of a ring jumps when a quarter of the ring lies ahead. When a quarter of an outbox is full, or memory runs short, the
// updates in it are dropped, and it takes none until the writer jumps over them, after the snapshots that wait. After a digest the
// stream is complete again. Answers that wait meanwhile follow the gap that they fall into. A client that missed more than what is
// kept, or cannot pay for a digest, is disconnected like any other.
//
// # Goroutines
//
// A connection is handed over right after its handshake, so that nothing of the request stays
// with it. The reader owns the reading half. It waits for what the client sends and has another
// goroutine handle it, questions to the ledger included, whose larger stack goes when it is
// done. The writer alone writes to the socket after the handshake, control frames included. It
// runs only while there is something to write: whatever adds something schedules it, and it
// stops when nothing is left, having set an alarm for what is due next. So an idle connection costs
// one small stack and one timer, about 7 KiB in all with ten keys named (scenario filtered of ledgerbench).
//
// [Hub.Publish] only appends to rings and outboxes, schedules writers, and never waits for a
// socket. While a subscriber wants tokens, another goroutine does that, after reading the mints of all that was published
// meanwhile with one query. A subscriber that the ring laps or whose outbox is full is a slow consumer, which is
// disconnected with close code 4008 unless it asked for conflation. A socket that takes no byte
// for writeTimeout is reset: there is no boundary of frames to put a close frame at.
//
// # Budgets
//
// All that waits for sockets takes from one budget of memory, Config.Memory, which answers of REST share: packets with their
// overhead, once however many connections they wait for, buffers being written, snapshots while
// they are made, backlogs of emissions that need not be kept for others, names, and incomplete messages. A connection may hold
// as much as is left for others, and the names of a client an eighth of all; a connection that needs more is closed with 1013, and
// when hardly any memory is left, handshakes are refused. Rings and the kept emissions have bounds of their own.
//
// A change of names costs time by the number of changed names, however many names a connection or others have. When a connection
// ends, its names are removed some at a time, because others wait for the hub's lock.
//
// Every frame from a client takes a token of its connection, except a message about a topic. The work that frames cause costs
// processor time, by a list of prices, and all connections of the client pay for it together. A client
// without tokens or in debt is disconnected with 1008; extended sockets are warned when little is left.
package stream
