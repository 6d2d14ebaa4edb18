// Package wire is what lies below the handlers of an HTTP server: connections and the strict
// check of request heads.
//
// # Nouns
//
// A [Server] runs fasthttp behind a listener of its own, which caps connections in total and per
// client and outlives a shortage of file descriptors.
//
// A [Conn] is one accepted connection, as fasthttp sees it. It keeps what fasthttp cannot see
// or do: line ends that fasthttp's parser drops, deadlines that reach the socket a few times
// a second at most, a last moment of reading after a refusal, and the hand-over to a new owner.
//
// # Order
//
// fasthttp reads and parses every request; the head is then checked more strictly than RFC 9112
// asks a recipient to, because a proxy in front may read lenient forms differently. A request
// that fails the check, or that fasthttp could not parse, reaches the handler with its fault, in
// order with the requests before it, and ends the connection: no byte behind it is executed.
package wire
