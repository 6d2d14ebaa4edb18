package stream

import (
	"fmt"
	"io"

	"github.com/VictoriaMetrics/metrics"
)

// meters are the numbers the hub keeps about itself.
type meters struct {
	memory      *memory
	connections metrics.Counter // goes down too
	panics      metrics.Counter
	frames      metrics.Counter
	bytes       metrics.Counter
	gaps        metrics.Counter
	laps        metrics.Counter
	ends        [reasons]metrics.Counter
	wants       [wantsKinds]metrics.Counter // go down too
	resumes     [origins]metrics.Counter
	refused     [rejections]metrics.Counter
}

// wantsKind is what sort of thing a subscriber wants. Each is one value of a metric's label.
type wantsKind uint8

const (
	wantsNone wantsKind = iota // not there yet, or any more
	wantsEverything
	wantsKeys
	wantsNothing
	wantsKinds
)

var wantsNames = [wantsKinds]string{"", "everything", "keys", "nothing"}

func wantedBy(w *wants) wantsKind {
	switch {
	case w.everything:
		return wantsEverything
	case w.names.count() > 0:
		return wantsKeys
	}
	return wantsNothing
}

// origin is where what a client missed comes from. Each is one value of a metric's label.
type origin uint8

const (
	originMemory  origin = iota
	originLog            // first, and then from memory
	originAhead          // nowhere: what the client has seen is not here yet
	originRefused        // nowhere: resync_required, perhaps after some waiting
	origins
)

var originNames = [origins]string{"memory", "log", "ahead", "refused"}

func newMeters(set *metrics.Set, memory *memory) *meters {
	m := &meters{memory: memory}
	set.RegisterMetricsWriter(m.write)
	return m
}

// closed counts the end of a connection.
func (m *meters) closed(why reason) { m.ends[why].Inc() }

// write writes all of it in the Prometheus text format.
func (m *meters) write(w io.Writer) {
	head := func(name, kind, help string) {
		fmt.Fprintf(w, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind)
	}
	one := func(name, kind, help string, value uint64) {
		head(name, kind, help)
		fmt.Fprintf(w, "%s %d\n", name, value)
	}
	each := func(name, kind, help, label string, values []string, counters []metrics.Counter) {
		head(name, kind, help)
		for i, value := range values {
			if value != "" {
				fmt.Fprintf(w, "%s{%s=%q} %d\n", name, label, value, counters[i].Get())
			}
		}
	}
	one("ledgerd_ws_connections", "gauge", "Open WebSocket connections.", m.connections.Get())
	one("ledgerd_ws_frames_total", "counter", "Frames written to WebSockets.", m.frames.Get())
	one("ledgerd_ws_bytes_total", "counter", "Bytes of frames written to WebSockets.", m.bytes.Get())
	one("ledgerd_ws_queue_bytes", "gauge", "Bytes of all that waits for WebSockets, rings excluded.", uint64(max(0, m.memory.used.Load())))
	one("ledgerd_ws_queue_limit_bytes", "gauge", "Bytes that may wait for WebSockets: one that asks for more is closed with 1013.", uint64(m.memory.limit))
	one("ledgerd_ws_gaps_total", "counter", "Gap frames written to WebSockets that asked for conflation.", m.gaps.Get())
	one("ledgerd_ws_laps_total", "counter", "WebSockets closed because their ring lapped them.", m.laps.Get())
	one("ledgerd_ws_panics_total", "counter", "Panics recovered in WebSocket connections.", m.panics.Get())
	each("ledgerd_ws_subscribers", "gauge", "Subscribers by what they want.", "wants", wantsNames[:], m.wants[:])
	each("ledgerd_ws_resumes_total", "counter", "Resumes by where what was missed came from; one ahead of the node may be refused later.", "from", originNames[:], m.resumes[:])
	each("ledgerd_ws_refused_total", "counter", "WebSocket handshakes refused by reason.", "reason", rejectionNames[:], m.refused[:])
	each("ledgerd_ws_closed_total", "counter", "Ended WebSocket connections by reason.", "reason", reasonNames[:], m.ends[:])
}
