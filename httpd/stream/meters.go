package stream

import (
	"fmt"
	"io"
	"sync/atomic"

	"github.com/VictoriaMetrics/metrics"
)

// reasons are why connections end, as metrics label them.
var reasons = []struct {
	code uint16
	name string
}{
	{0, "gone"}, {closeNormal, "normal"}, {closeGoingAway, "shutdown"}, {closeUnsupported, "binary"},
	{closeBadUTF8, "bad_utf8"}, {closePolicy, "policy"}, {closeInternal, "internal"},
	{closeTryAgain, "try_again"}, {closeSlow, "slow_consumer"},
}

// meters are the numbers the hub keeps about itself.
type meters struct {
	connections *metrics.Counter
	panics      *metrics.Counter
	frames      atomic.Uint64
	bytes       *metrics.Counter
	ends        []atomic.Uint64 // by place in reasons; the last for all other codes
}

func newMeters(set *metrics.Set) *meters {
	m := &meters{
		connections: new(metrics.Counter), panics: new(metrics.Counter), bytes: new(metrics.Counter),
		ends: make([]atomic.Uint64, len(reasons)+1),
	}
	set.RegisterMetricsWriter(m.write)
	return m
}

// closed counts the end of a connection.
func (m *meters) closed(code uint16) {
	for i, r := range reasons {
		if r.code == code {
			m.ends[i].Add(1)
			return
		}
	}
	m.ends[len(reasons)].Add(1)
}

func (m *meters) write(w io.Writer) {
	head := func(name, kind, help string) { fmt.Fprintf(w, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind) }
	head("ledgerd_ws_connections", "gauge", "Open WebSocket connections.")
	fmt.Fprintf(w, "ledgerd_ws_connections %d\n", m.connections.Get())
	head("ledgerd_ws_frames_total", "counter", "Frames written to WebSockets.")
	fmt.Fprintf(w, "ledgerd_ws_frames_total %d\n", m.frames.Load())
	head("ledgerd_ws_bytes_total", "counter", "Bytes of frames written to WebSockets.")
	fmt.Fprintf(w, "ledgerd_ws_bytes_total %d\n", m.bytes.Get())
	head("ledgerd_ws_panics_total", "counter", "Panics recovered in WebSocket connections.")
	fmt.Fprintf(w, "ledgerd_ws_panics_total %d\n", m.panics.Get())
	head("ledgerd_ws_closed_total", "counter", "Ended WebSocket connections by reason.")
	for i, r := range reasons {
		fmt.Fprintf(w, "ledgerd_ws_closed_total{reason=%q} %d\n", r.name, m.ends[i].Load())
	}
	fmt.Fprintf(w, "ledgerd_ws_closed_total{reason=\"peer_code\"} %d\n", m.ends[len(reasons)].Load())
}
