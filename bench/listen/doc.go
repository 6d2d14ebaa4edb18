// Package listen has subscribers of ledgerd's stream that cost their machine little, and counts what they receive.
//
// # Nouns
//
// A conn is one WebSocket connection. It writes the handshake and the frames itself and reads many frames with one call of
// the kernel. Frames come one by one (Next) or in batches (Drain): all whole frames that arrived together, of which only
// the headers were read.
//
// A pool is a number of subscribers, each of which reads one stream: a conn, or what another service sends. What is read of
// the frames is the pool's mode: their number alone (CountFrames), the first and the last of a batch, which say how late
// their block is (TimeSlots), or the numbers of all (CheckNumbers).
//
// A book is what one subscriber has received by the numbers of extended frames: which are missing, and which came twice.
//
// # Missing and twice
//
// A subscriber of everything at the processed level receives every number: each that is passed over is missing. To others
// numbers come with holes, because updates of other accounts and of orphaned slots have numbers too. Of those the pool
// compares what its subscribers, who all ask for the same, have received of a slot when its slot_end comes: who received
// fewer than another misses the difference. A single subscriber of some accounts cannot be found to miss anything.
//
// An update whose number is not above the last came twice; but restored accounts at higher levels share a number, and after
// a resume those of the very number come again. What the server says is lost (resync_required) is not missing: it is
// counted apart.
//
// # Rules
//
// One goroutine reads a conn; any number may write. Pings are answered by the reader. What is returned of a frame is valid
// until the next read. Fragments and compression are errors: ledgerd uses neither.
package listen
