// Package cluster lets nodes share one log: a JetStream stream that one node writes and all follow.
//
// # Nouns
//
// The stream holds commits. A commit is the records of one batch, compressed, in one or more messages, each with a
// [head] that says what of which commit it is. A claim is a message of its own by which a node becomes the writer: with it
// an epoch begins, the number that all messages of that writer bear.
//
// The lease is a key in a bucket beside the stream. Who holds it may claim; it only keeps nodes from claiming in turns. A node
// takes it only while it holds the whole log. Another key, of the same kind, says who makes snapshots, which package exchange
// offers and fetches.
//
// # What makes a commit
//
// The stream accepts a message only at the sequence that its writer expected. A commit exists when all of its messages do,
// one behind the other. Messages of a commit that is not whole when a claim follows are nothing, to every reader alike.
// A commit is handed out whole, in order, once, with the chain of hashes checked from one commit to the next.
//
// # Why fencing by the expected sequence is enough
//
// Two nodes may both think that they are the writer: the lease promises nothing. What each of them writes next was made
// for a sequence, and the stream has one message at each. Suppose A wrote up to n, and B takes over.
//
//  1. B claims at m+1, where m is the newest that B has followed. The claim is accepted only if m is the stream's end, so
//     at that instant B holds all that anybody ever wrote. Its state is that behind the last whole commit.
//  2. What A sends at once is a unit: one message or an atomic batch, of which the stream takes all or nothing. It expects
//     the sequence of a message that A knows to be there and to be its own, and A sends nothing behind it before it knows
//     that the unit is there. Units up to m are in B's state, if their commit is whole, or belong to a commit that is
//     not, which the claim ends for ever. A unit behind m expects m, where the claim now follows: it is refused, whenever
//     it arrives. No other is on its way. (Were there one, expecting the sequence that the unit before it should have
//     got, then B's claim could stand at that very sequence, and let it in.)
//  3. A learns that it was refused, or that no answer came. In both cases it looks at what stands at the sequence: its own
//     bytes, and it goes on; nothing, and it sends them again, to the same sequence; another's, and it is deposed. None of
//     the three depends on a clock or on the lease, and a look at an old copy of the stream errs only towards nothing.
//
// So the records that readers ever see are one sequence, each by the one writer whose claim stands before. This asks of
// the servers that there be one message at a sequence, for ever. A server that leads the stream checks what is expected
// against all that it has accepted, what is on its way to the others included; it leads only after it applied all that
// was agreed upon before; and what is agreed upon carries its sequence, which is checked once more where it is stored. That
// holds as long as what a server acknowledged outlives it: hence sync_interval: always. Where it does not hold, the chain of
// hashes tells: whoever read what was lost refuses what comes in its place.
//
// # What is refused
//
// Readers check each message: its sequence, its head, the epoch, the chain, the versions, the state hash before it, and the
// checksum before anything is decompressed. What does not fit is a [*DamageError]. A stream that is another than it was
// ([ErrRecreated]), ends before what a node holds ([ErrShortened]), begins behind it ([ErrPurged]) or leads elsewhere
// ([ErrOtherLedger]) is named, never followed.
//
// What a server tells of the stream as a whole counts only while it leads the stream and hears from most of the others. One that
// lacks messages, or that was cut off, answers as well: nodes wait then, and do not know that they hold the whole log.
//
// # Lifetime
//
// [Open] needs no server; everything waits for them, and goes on when they come back. [Cluster.Close] ends and awaits every
// goroutine, and gives up the leases. Of a [Log], Follow and Commit are for one goroutine at a time; the rest is for any.
package cluster
