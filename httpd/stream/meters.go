package stream

import (
	"github.com/VictoriaMetrics/metrics"

	"ledgerd/engine/figures"
)

// meters are the numbers the hub keeps about itself.
type meters struct {
	panics, frames, bytes, gaps *metrics.Counter

	ends    map[string]*metrics.Counter // by one of endReasons
	refused map[string]*metrics.Counter // by one of rejectionReasons
	// resumes by where what a client missed comes from: memory, or the log and then memory. What it has
	// seen may be ahead of the node, or too old, which is refused.
	resumes map[string]*metrics.Counter
}

// wantedKinds are what connections want, each one value of a metric's label.
var wantedKinds = []string{"everything", "keys", "nothing"}

// newMeters registers the numbers of the hub.
func (h *Hub) newMeters() meters {
	set := h.config.Metrics
	figures.Gauge(set, "ledgerd_ws_connections", "Open WebSocket connections.", func() float64 { return float64(h.count("")) })
	figures.Gauge(set, "ledgerd_ws_queue_bytes", "Bytes of what waits for WebSockets, of their names and of messages that are not whole yet; rings excluded.",
		func() float64 { return float64(h.memory.Used()) })
	figures.Gauge(set, "ledgerd_ws_held_bytes", "Bytes of the newest frames, in rings that sockets read, and of the updates that resumed ones are told.", h.heldBytes)
	figures.Each(set, "ledgerd_ws_subscribers", "gauge", "Subscribers by what they want.", "wants", wantedKinds,
		func(i int) uint64 { return h.count(wantedKinds[i]) })
	return meters{
		panics: figures.Counter(set, "ledgerd_ws_panics_total", "Panics recovered in WebSocket connections."),
		frames: figures.Counter(set, "ledgerd_ws_frames_total", "Frames written to WebSockets."),
		bytes:  figures.Counter(set, "ledgerd_ws_bytes_total", "Bytes of frames written to WebSockets."),
		gaps:   figures.Counter(set, "ledgerd_ws_gaps_total", "Gap frames written to WebSockets that asked for conflation."),
		ends:   figures.Counters(set, "ledgerd_ws_closed_total", "Ended WebSocket connections by reason.", "reason", endReasons...),
		refused: figures.Counters(set, "ledgerd_ws_refused_total", "WebSocket handshakes refused by reason; before the node is ready they are 503s of the route ws_accounts.",
			"reason", rejectionReasons...),
		resumes: figures.Counters(set, "ledgerd_ws_resumes_total", "Resumes by where what was missed came from; one ahead of the node may be refused later.",
			"from", "memory", "log", "ahead", "refused"),
	}
}

// heldBytes returns how much memory is held for all connections together.
func (h *Hub) heldBytes() float64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	bytes := h.recentBytes
	for level := range h.levels {
		for _, r := range h.levels[level].rings {
			bytes += r.bytes
		}
	}
	return float64(bytes)
}

// count returns how many connections want something of a kind; of "", how many there are.
func (h *Hub) count(kind string) (count uint64) {
	h.each(func(c *connection) {
		if kind == "" || c.speaker.wanted() == kind {
			count++
		}
	})
	return count
}
