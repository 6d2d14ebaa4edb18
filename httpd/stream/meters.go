package stream

import (
	"io"

	"github.com/VictoriaMetrics/metrics"

	"ledgerd/httpd/promtext"
)

// meters are the numbers the hub keeps about itself.
type meters struct {
	panics  metrics.Counter
	frames  metrics.Counter
	bytes   metrics.Counter
	gaps    metrics.Counter
	laps    metrics.Counter
	ends    promtext.Labelled // by one of endReasons
	refused promtext.Labelled // by one of rejectionReasons
	// resumes by where what a client missed comes from: memory, or the log and then memory. What it has
	// seen may be ahead of the node, or too old, which is refused.
	resumes promtext.Labelled
}

// wantedKinds are what connections want, each one value of a metric's label.
var wantedKinds = []string{"everything", "keys", "nothing"}

// writeMetrics writes the numbers of the hub in the Prometheus text format.
func (h *Hub) writeMetrics(w io.Writer) {
	m := &h.meters
	wanted, all := make(map[string]uint64), uint64(0)
	for _, kind := range wantedKinds {
		wanted[kind] = 0
	}
	h.each(func(c *connection) {
		wanted[c.speaker.wanted()]++
		all++
	})
	promtext.Value(w, "ledgerd_ws_connections", "gauge", "Open WebSocket connections.", all)
	promtext.Value(w, "ledgerd_ws_frames_total", "counter", "Frames written to WebSockets.", m.frames.Get())
	promtext.Value(w, "ledgerd_ws_bytes_total", "counter", "Bytes of frames written to WebSockets.", m.bytes.Get())
	promtext.Value(w, "ledgerd_ws_queue_bytes", "gauge", "Bytes of what waits for WebSockets, of their names and of messages that are not whole yet; rings excluded.", uint64(h.memory.Used()))
	promtext.Value(w, "ledgerd_ws_gaps_total", "counter", "Gap frames written to WebSockets that asked for conflation.", m.gaps.Get())
	promtext.Value(w, "ledgerd_ws_laps_total", "counter", "WebSockets closed because their ring lapped them.", m.laps.Get())
	promtext.Value(w, "ledgerd_ws_panics_total", "counter", "Panics recovered in WebSocket connections.", m.panics.Get())
	promtext.Each(w, "ledgerd_ws_subscribers", "gauge", "Subscribers by what they want.", "wants", wanted)
	promtext.Each(w, "ledgerd_ws_resumes_total", "counter", "Resumes by where what was missed came from; one ahead of the node may be refused later.", "from", m.resumes.Samples())
	promtext.Each(w, "ledgerd_ws_refused_total", "counter", "WebSocket handshakes refused by reason; before the node is ready they are 503s of the route ws_accounts.", "reason", m.refused.Samples())
	promtext.Each(w, "ledgerd_ws_closed_total", "counter", "Ended WebSocket connections by reason.", "reason", m.ends.Samples())
}
