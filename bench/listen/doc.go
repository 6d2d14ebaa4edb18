// Package listen has subscribers of ledgerd's stream that cost their machine little, and counts what they receive.
//
// They are not those of ledgerd/httpd/client: an instrument that counts what is missing and twice must see each frame as it came, where a
// client library has taken out what comes again; and to read thousands of streams it looks at a few bytes of each frame.
//
// # Nouns
//
// A conn is one WebSocket connection of github.com/fasthttp/websocket, whose frames are read one by one. A stream is what
// a subscriber reads: a conn, or what another service sends. A drained stream only counts bytes, of which the frames are
// known by their length.
//
// A pool is a number of subscribers, each of which reads one stream through all of its connections. Where frames have one
// length and come by the million, most subscribers drain, and a sample of them reads frames (Config.FrameBytes). Nothing may
// be published before such subscribers are connected.
//
// A book is what one subscriber has received by the numbers of extended frames: which are missing, and which came twice.
//
// # Missing and twice
//
// A subscriber of everything at the processed level receives every number once: each that is passed over is missing, and an update whose number
// is not above the last came twice. To others numbers come with holes, because updates of other accounts and of orphaned slots have numbers too,
// and restored accounts share one: of those nothing is found missing or twice. What the server says is lost (resync_required) is not missing: it
// is counted apart.
//
// # Rules
//
// One goroutine reads a conn; any number may write. Pings are answered by the reader, and not by a drained stream: ledgerd
// asks for no answer. What is returned of a frame is valid until the next read.
package listen
