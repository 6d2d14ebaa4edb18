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
	kinds       [kinds]metrics.Counter // go down too
	resumes     [origins]metrics.Counter
	gaps        metrics.Counter
	laps        metrics.Counter
}

// kind is what sort of subscriber one is. Each is one value of a metric's label.
type kind uint8

const (
	kindNone kind = iota // not there yet, or any more
	kindEverything
	kindKeys
	kindNothing
	kinds
)

var kindNames = [kinds]string{kindEverything: "everything", kindKeys: "keys", kindNothing: "nothing"}

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
	head("ledgerd_ws_subscribers", "gauge", "Subscribers by what they want.")
	for k := kindEverything; k < kinds; k++ {
		fmt.Fprintf(w, "ledgerd_ws_subscribers{wants=%q} %d\n", kindNames[k], m.kinds[k].Get())
	}
	head("ledgerd_ws_resumes_total", "counter", "Resumes by where what was missed came from; one ahead of the node may be refused later.")
	for from, name := range originNames {
		fmt.Fprintf(w, "ledgerd_ws_resumes_total{from=%q} %d\n", name, m.resumes[from].Get())
	}
	head("ledgerd_ws_gaps_total", "counter", "Gap frames written to WebSockets that asked for conflation.")
	fmt.Fprintf(w, "ledgerd_ws_gaps_total %d\n", m.gaps.Get())
	head("ledgerd_ws_laps_total", "counter", "WebSockets closed because their ring lapped them.")
	fmt.Fprintf(w, "ledgerd_ws_laps_total %d\n", m.laps.Get())
	head("ledgerd_ws_panics_total", "counter", "Panics recovered in WebSocket connections.")
	fmt.Fprintf(w, "ledgerd_ws_panics_total %d\n", m.panics.Get())
	head("ledgerd_ws_closed_total", "counter", "Ended WebSocket connections by reason.")
	for why, name := range reasonNames {
		fmt.Fprintf(w, "ledgerd_ws_closed_total{reason=%q} %d\n", name, m.ends[why].Get())
	}
}
