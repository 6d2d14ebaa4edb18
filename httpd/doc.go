// Package httpd is the REST side of the node: it answers the questions of the interface
// over a [Ledger] somebody else keeps, and knows nothing of how it is kept.
//
// # Nouns
//
// A conn is one accepted connection. It reads whole request heads, checks them to the
// letter, and hands them to fasthttp one at a time; what it refuses fasthttp never sees, and
// what is asked most is answered before fasthttp would see it: see direct.go.
// A request is one exchange: a client, a route, a question, a reply.
// A client is who is counted: an IPv4 address or an IPv6 /64.
//
// # Order
//
// Every exchange goes the same way, errors of parsing included: who asks, may they ask
// (the two windows of the rate limit), what is asked, the answer, the headers that every
// response carries. So no response leaves without them, and nothing that is refused is
// looked at further.
//
// # Lifetime
//
// Nothing taken from a fasthttp.RequestCtx outlives the handler: keys are parsed to values
// before the ledger is asked. The buffers an answer is made in belong to the request,
// which goes back to its pool in the function that took it.
package httpd
