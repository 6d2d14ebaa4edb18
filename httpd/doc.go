// Package httpd is the REST side of the node: it answers the requests of the interface
// from a [Ledger] that the caller passes in, and does not know how the ledger is stored. Outside the
// interface it serves the pages of httpd/console, and shows browsers a page where other clients get an error record.
//
// # Nouns
//
// A route is one row of the interface: a path of fasthttp/router, its parameters, and the query
// it makes. An exchange is the part of a request and its response that REST and the doors share: a client, its limits, the
// fields of the response. A request is an exchange of REST or at a door. A page is a resource outside the interface, with the same
// body for every client.
//
// # Order
//
// Every exchange takes the same steps, even if its request could not be parsed: its client is
// identified and counted, its head and path are checked, the router finds the route, the route
// queries the ledger, and the headers that every response carries are set. So every response
// has these headers, and nothing of a refused request is examined further. A file that belongs
// to pages is counted apart: a page and its files count once.
//
// # Lifetime
//
// Nothing taken from a fasthttp.RequestCtx outlives the handler: keys are parsed to values
// before the ledger is asked. The buffers an answer is made in belong to the request, which goes
// back to its pool when fasthttp has written the response and closes the values of the context.
//
// # Below
//
// httpd/wire holds connections and the check of heads, httpd/ratelimit clients and their windows,
// httpd/encode the records as JSON, httpd/accesslog the file with a line for each answer, httpd/console the pages, httpd/stream the WebSocket side,
// httpd/ops the operators' listener. The upgrade handler of the stream is handed in by the caller.
package httpd
