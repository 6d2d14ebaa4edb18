// Package cluster lets nodes share one log: a JetStream stream that one node writes and all follow.
//
// # Nouns
//
// The stream holds commits. A commit is the records of one batch, compressed, in one or more messages, each with a
// [head] that says what of which commit it is. A claim is a message of its own by which a node becomes the writer: with it
// an epoch begins, the number that all messages of that writer bear.
//
// The lease is a key in a bucket beside the stream. Who holds it may claim; it only keeps nodes from claiming in turns.
//
// # The protocol
//
//  1. All messages of the stream have one subject. The stream accepts a message only at the sequence that its writer expected.
//  2. A commit exists when all of its messages do, one after the other. Messages of a commit that is not whole when a claim
//     follows are void, to every reader alike.
//  3. A node takes the lease only if it knew within two seconds that it held the whole log, and lets go of it if it does not know that any
//     more before it came to write, or if no claim of it was stored for ten seconds. The lease is a hint: safety never depends on it.
//  4. To write, a node appends a claim that expects the sequence of the newest message that it took. That it is accepted proves
//     that the node had taken everything. The claim begins the next epoch.
//  5. A writer sends one unit at a time: one message, or an atomic batch of which the stream takes all or nothing. Only the first
//     message of a unit says which sequence it expects. The next unit waits until this one is known to be stored.
//  6. So a unit that is late expects a sequence that the claim of the next writer has passed, and is refused.
//  7. Where an acknowledgement does not come, the writer looks at what stands at the sequence: its own bytes, and it goes on;
//     nothing, and it sends the unit again; a message of a later epoch, and it is deposed; anything else is damage. A look that
//     is out of date errs only towards nothing, and then the unit that is sent again is refused by its sequence.
//  8. Followers take commits whole, in order, once. They check each message against the one before: sequence, epoch, chain of
//     hashes, versions, and the state hash. So history that was lost or rewritten is seen.
//
// # Why fencing by the expected sequence is enough
//
// Two nodes may both think that they are the writer: the lease promises nothing. What each of them writes next was made
// for a sequence, and the stream has one message at each. Suppose A wrote up to n, and B takes over.
//
//  1. B claims at m+1, where m is the newest that B has followed. The claim is accepted only if m is the stream's end, so
//     at that instant B holds all that anybody ever wrote. Its state is that after the last whole commit.
//  2. What A sends at once is a unit. It expects the sequence of a message that A knows to be there and to be its own, and A
//     sends nothing after it before it knows that the unit is there. Units up to m are in B's state, if their commit is whole, or
//     belong to a commit that is not, which the claim ends for ever. A unit after m expects m, where the claim now follows: it is
//     refused, whenever it arrives. No other is on its way. (Were there one, expecting the sequence that the unit before it
//     should have got, then B's claim could stand at that very sequence, and let it in.)
//  3. A learns that it was refused, or that no answer came. In both cases it looks at what stands at the sequence, as above.
//     None of what it finds depends on a clock or on the lease.
//
// So the records that readers ever see are one sequence, each by the one writer whose claim stands before. This asks of
// the servers that there be one message at a sequence, for ever. A server that leads the stream checks what is expected
// against all that it has accepted, what is on its way to the others included; it leads only after it applied all that
// was agreed upon before; and what is agreed upon carries its sequence, which is checked once more where it is stored. That
// holds as long as what a server acknowledged outlives it: hence sync_interval: always, which nodes ask for where they may, and
// warn of where they may not. Where it does not hold, the chain of hashes tells: whoever read what was lost refuses what comes
// in its place.
//
// # What is refused
//
// Readers check each message before anything is decompressed, its checksum included. What does not fit is a [*DamageError]. A
// stream that is another than it was ([ErrRecreated]), ends before what a node holds ([ErrShortened]), begins after it
// ([ErrPurged]), leads elsewhere ([ErrOtherLedger]), may lose messages by itself ([ErrUnsafe]) or is of a server before 2.12
// ([ErrOldServer]) is named, never followed. A node that follows learns of the first three also while no message comes.
//
// What a server tells of the stream as a whole counts only while it leads the stream and hears from most of the others, and
// messages that are asked for one by one come from the leader. A server that lacks messages, or that was cut off, answers as well:
// nodes wait then, and do not know that they hold the whole log. What cannot be is believed once it has lasted for 8 seconds.
//
// # Lifetime
//
// [Open] needs no server; everything waits for them, and goes on when they come back. [Cluster.Close] ends and awaits every
// goroutine, and gives up the lease. Of a [Log], Follow and Commit are for one goroutine at a time; the rest is for any.
package cluster
