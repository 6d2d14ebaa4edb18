// Package httpd is the REST side of the node: it answers the questions of the interface
// over a [Ledger] that the caller hands in, and does not know how the ledger is kept. Outside the
// interface it serves what httpd/console has for people, and shows browsers a page where others get an error record.
//
// # Nouns
//
// A route is one row of the interface: a path of fasthttp/router, its parameters, and the question
// it asks. An exchange is a request and its response as far as they are alike in every language: a client, its limits, the fields of the
// response. A request is an exchange of REST: a route, a question, a reply. A page is a resource outside the interface, with one body for everybody.
//
// # Order
//
// Every exchange goes the same way, those that could not be parsed included: its client is
// identified and counted, its head and path are checked, the router finds the route, the route
// asks the ledger, and the headers that every response carries are set. So no response
// leaves without them, and nothing of a refused request is looked at further. A file that belongs
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
