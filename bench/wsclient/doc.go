// Package wsclient is a WebSocket client of ledgerd's stream that costs its machine little.
//
// # Nouns
//
// A conn is one connection. It writes the handshake and the frames itself, on a net.Conn, and
// reads many frames with one call of the kernel. Frames come one by one (Next) or as batches
// (Drain): all whole frames that arrived together, of which only the headers were looked at.
//
// A state is what frames add up to: the last update of every account, and how far the stream
// is complete. It notices frames that are missing and frames that came twice.
//
// # Rules
//
// One goroutine reads a conn; any number may write. Pings are answered by whoever reads. What
// is returned of a frame is valid until the next read. The servers spoken to do not cut
// messages into fragments and do not compress: a frame of that kind is an error.
package wsclient
