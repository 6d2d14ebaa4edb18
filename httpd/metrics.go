package httpd

import (
	"fmt"
	"io"
	"time"

	"ledgerd/engine/figures"
	"ledgerd/httpd/promtext"
	"ledgerd/httpd/ratelimit"
)

// statusClasses are 1xx to 5xx.
const statusClasses = 5

// meters are the numbers the server keeps about itself. Every label is one of ours: none
// comes from a request.
type meters struct {
	limited    [ratelimit.Kinds]promtext.Counter
	panics     promtext.Counter
	overloaded promtext.Counter // answers refused for want of memory
}

// observe counts one finished exchange.
func (r *route) observe(status int, took time.Duration) {
	r.requests[min(max(status/100, 1), statusClasses)-1].Add(1)
	r.latency.Observe(took)
}

// writeOwnMetrics writes the numbers of the server in the Prometheus text format.
func (s *Server) writeOwnMetrics(w io.Writer) {
	figures.Head(w, "ledgerd_http_requests_total", "counter", "Requests answered on the public listeners, by route and status class.")
	for _, r := range s.routes {
		for class := range statusClasses {
			promtext.Sample(w, "ledgerd_http_requests_total", fmt.Sprintf(`route=%q,status="%dxx"`, r.label, class+1), r.requests[class].Load())
		}
	}
	figures.Head(w, "ledgerd_http_request_duration_seconds", "histogram", "Time from a complete request head to a complete answer in memory, by route.")
	for _, r := range s.routes {
		r.latency.Write(w, "ledgerd_http_request_duration_seconds", fmt.Sprintf("route=%q", r.label))
	}
	limited := make(map[string]uint64)
	for k := range ratelimit.Kind(ratelimit.Kinds) {
		limited[k.String()] = s.meters.limited[k].Load()
	}
	promtext.Each(w, "ledgerd_http_rate_limited_total", "counter", "Requests refused with 429, by the window that was used up.", "window", limited)
	promtext.Each(w, "ledgerd_http_connections_refused_total", "counter", "Connections closed unanswered because of a cap, by the cap.",
		"cap", map[string]uint64{"total": s.Counts.RefusedTotal.Load(), "client": s.Counts.RefusedClient.Load()})
	promtext.Value(w, "ledgerd_http_connections_evicted_total", "counter", "Connections without a whole request closed to make room for new ones.", s.Counts.Evicted.Load())
	promtext.Value(w, "ledgerd_http_floods_total", "counter", "Times that the attempts of a client to connect were dropped for the rest of a second, because too many were refused in it.", s.Counts.Floods.Load())
	promtext.Value(w, "ledgerd_http_tls_wasteful_total", "counter", "Connections ended because they sent too many records of TLS without data, or too long a handshake.", s.Counts.Wasteful.Load())
	promtext.Value(w, "ledgerd_http_panics_total", "counter", "Panics recovered in request handlers.", s.meters.panics.Load())
	promtext.Value(w, "ledgerd_http_connections", "gauge", "Connections open on the public listener, WebSockets included.", uint64(s.Connections()))
	promtext.Value(w, "ledgerd_http_accept_shortages_total", "counter", "Times that accepting a connection failed for want of file descriptors or memory.", s.Counts.Shortages.Load())
	promtext.Value(w, "ledgerd_http_connection_errors_total", "counter", "Connections that ended with an error below HTTP.", s.Counts.Errors.Load())
	promtext.Value(w, "ledgerd_http_answer_bytes", "gauge", "Memory of long answers that are being made or written.", uint64(s.answers.Used()))
	promtext.Value(w, "ledgerd_client_memory_bytes", "gauge", "Memory that clients have the node hold: long answers, and what WebSockets hold.", uint64(s.config.Memory.Used()))
	promtext.Value(w, "ledgerd_client_memory_limit_bytes", "gauge", "The most that may wait for clients.", uint64(s.config.Memory.Limit()))
	promtext.Value(w, "ledgerd_http_overloaded_total", "counter", "Requests refused with 503 because too much waited for clients.", s.meters.overloaded.Load())
}
