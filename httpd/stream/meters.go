package stream

import (
	"fmt"
	"io"

	"github.com/VictoriaMetrics/metrics"
)

// meters are the numbers the hub keeps about itself.
type meters struct {
	connections metrics.Counter // goes down too
	panics      metrics.Counter
	frames      metrics.Counter
	bytes       metrics.Counter
	ends        [reasons]metrics.Counter
}

func newMeters(set *metrics.Set) *meters {
	m := new(meters)
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
	head("ledgerd_ws_connections", "gauge", "Open WebSocket connections.")
	fmt.Fprintf(w, "ledgerd_ws_connections %d\n", m.connections.Get())
	head("ledgerd_ws_frames_total", "counter", "Frames written to WebSockets.")
	fmt.Fprintf(w, "ledgerd_ws_frames_total %d\n", m.frames.Get())
	head("ledgerd_ws_bytes_total", "counter", "Bytes of frames written to WebSockets.")
	fmt.Fprintf(w, "ledgerd_ws_bytes_total %d\n", m.bytes.Get())
	head("ledgerd_ws_panics_total", "counter", "Panics recovered in WebSocket connections.")
	fmt.Fprintf(w, "ledgerd_ws_panics_total %d\n", m.panics.Get())
	head("ledgerd_ws_closed_total", "counter", "Ended WebSocket connections by reason.")
	for why, name := range reasonNames {
		fmt.Fprintf(w, "ledgerd_ws_closed_total{reason=%q} %d\n", name, m.ends[why].Get())
	}
}
