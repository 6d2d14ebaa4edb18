package httpd

import (
	"fmt"
	"io"
	"time"
)

// statusClasses are 1xx to 5xx.
const statusClasses = 5

// meters are the numbers the server keeps about itself. Every label is one of ours: none
// comes from a request.
type meters struct {
	requests [routes][statusClasses]paddedCounter
	latency  [routes]Histogram
	limited  [windowKinds]paddedCounter
	panics   paddedCounter

	refusedAll  paddedCounter // connections closed because the server is full
	refusedPeer paddedCounter // connections closed because the client has too many
	shortages   paddedCounter // Accept failed for want of a resource
	connErrors  paddedCounter // connections that fasthttp gave up
	open        func() int    // connections open now
}

// observe counts one finished exchange.
func (m *meters) observe(r route, status int, took time.Duration) {
	m.requests[r][min(max(status/100, 1), statusClasses)-1].Add(1)
	m.latency[r].Observe(took)
}

// write writes all of it in the Prometheus text format.
func (m *meters) write(w io.Writer) {
	writeFamily(w, "ledgerd_http_requests_total", "counter", "Requests answered on the public listener, by route and status class.")
	for r, name := range routeNames {
		for class := range statusClasses {
			writeSample(w, "ledgerd_http_requests_total", fmt.Sprintf(`route=%q,status="%dxx"`, name, class+1), m.requests[r][class].Load())
		}
	}
	writeFamily(w, "ledgerd_http_request_duration_seconds", "histogram", "Time from a complete request head to a complete answer in memory, by route.")
	for r, name := range routeNames {
		m.latency[r].Write(w, "ledgerd_http_request_duration_seconds", fmt.Sprintf("route=%q", name))
	}
	writeFamily(w, "ledgerd_http_rate_limited_total", "counter", "Requests refused with 429, by the window that was used up.")
	for k := range windowKind(windowKinds) {
		writeSample(w, "ledgerd_http_rate_limited_total", fmt.Sprintf("window=%q", k), m.limited[k].Load())
	}
	writeFamily(w, "ledgerd_http_panics_total", "counter", "Panics recovered in request handlers.")
	writeSample(w, "ledgerd_http_panics_total", "", m.panics.Load())
	writeFamily(w, "ledgerd_http_connections", "gauge", "Connections open on the public listener, WebSockets included.")
	writeSample(w, "ledgerd_http_connections", "", uint64(m.open()))
	writeFamily(w, "ledgerd_http_connections_refused_total", "counter", "Connections closed unanswered because of a cap, by the cap.")
	writeSample(w, "ledgerd_http_connections_refused_total", `cap="total"`, m.refusedAll.Load())
	writeSample(w, "ledgerd_http_connections_refused_total", `cap="client"`, m.refusedPeer.Load())
	writeFamily(w, "ledgerd_http_accept_shortages_total", "counter", "Times that accepting a connection failed for want of file descriptors or memory.")
	writeSample(w, "ledgerd_http_accept_shortages_total", "", m.shortages.Load())
	writeFamily(w, "ledgerd_http_connection_errors_total", "counter", "Connections that ended with an error below HTTP.")
	writeSample(w, "ledgerd_http_connection_errors_total", "", m.connErrors.Load())
}

func writeFamily(w io.Writer, name, kind, help string) {
	_, _ = fmt.Fprintf(w, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind)
}

func writeSample(w io.Writer, name, labels string, value uint64) {
	if labels != "" {
		name += "{" + labels + "}"
	}
	_, _ = fmt.Fprintf(w, "%s %d\n", name, value)
}
