package upstream

import (
	"fmt"
	"io"

	"github.com/VictoriaMetrics/metrics"

	"ledgerd/engine/figures"
)

// figure is one row of what a set shows.
type figure struct {
	name, kind, help string
	value            any
}

// Show has a set write the figures of a source that follows a live node.
func Show(set *metrics.Set, now func() Snapshot) {
	set.RegisterMetricsWriter(func(w io.Writer) {
		s := now()
		write(w, []figure{
			{"ledgerd_source_connected", "gauge", "1 while there is a connection to the node that is followed.", figures.One(s.Connected)},
			{"ledgerd_source_reconnects_total", "counter", "Connections to the node after the first one.", s.Reconnects},
			{"ledgerd_source_replays_total", "counter", "Connections that asked the node to begin with an earlier slot.", s.Replays},
			{"ledgerd_source_messages_total", "counter", "Messages and answers received from the node.", s.Messages},
			{"ledgerd_source_received_bytes_total", "counter", "Bytes of the messages and answers received from the node.", s.Bytes},
			{"ledgerd_source_blocks_total", "counter", "Whole blocks that the source made of what it received.", s.Blocks},
			{"ledgerd_source_duplicates_total", "counter", "Things received twice and dropped, as after a replay.", s.Duplicates},
			{"ledgerd_source_dead_slots_total", "counter", "Slots the node gave up.", s.Dead},
			{"ledgerd_source_upstream_slot", "gauge", "Newest slot seen at the node.", s.UpstreamSlot},
			{"ledgerd_source_slot", "gauge", "Newest slot of which the source made a whole block.", s.SealedSlot},
			{"ledgerd_source_lag_slots", "gauge", "Slots the node is ahead of the newest whole block.", s.LagSlots},
			{"ledgerd_source_lag_seconds", "gauge", "For how long the node has been ahead of the newest whole block, 0 while it is not.",
				fmt.Sprintf("%.6f", s.Lag.Seconds())},
			{"ledgerd_source_gaps_total", "counter", "Times that blocks were found to be missing.", s.Gaps},
			{"ledgerd_source_gap_slots_total", "counter", "Slots of the gaps that were found, skipped ones included.", s.GapSlots},
			{"ledgerd_source_gaps_repaired_total", "counter", "Gaps that were filled.", s.GapsRepaired},
			{"ledgerd_source_gap_open", "gauge", "1 while blocks are missing: nothing after them is shown.", figures.One(s.Gap.Open())},
			{"ledgerd_source_gap_stuck", "gauge", "1 while blocks are missing that cannot be had from anywhere.", figures.One(s.Gap.Open() && s.Gap.Stuck)},
			{"ledgerd_source_errors_total", "counter", "Errors on the way to the node and in what it sent, by kind.", s.Errors},
		})
		if len(s.Nodes) == 0 {
			return
		}
		figures.Head(w, "ledgerd_source_node_connected", "gauge", "1 for the node, of several, that is followed while there is a connection to it.")
		for _, node := range s.Nodes {
			fmt.Fprintf(w, "ledgerd_source_node_connected{node=%q} %v\n", node, figures.One(s.Connected && node == s.Node))
		}
	})
}

// ShowCalls has a set write the figures of a node that is asked beside a stream, to fill gaps and for accounts. Their names are
// others, because a fill that fails is an error of the source too.
func ShowCalls(set *metrics.Set, now func() Snapshot) {
	set.RegisterMetricsWriter(func(w io.Writer) {
		s := now()
		write(w, []figure{
			{"ledgerd_source_calls_connected", "gauge", "1 while the node that is asked beside the stream answers.", figures.One(s.Connected)},
			{"ledgerd_source_calls_answers_total", "counter", "Answers of the node that is asked beside the stream.", s.Messages},
			{"ledgerd_source_calls_received_bytes_total", "counter", "Bytes of the answers of the node that is asked beside the stream.", s.Bytes},
			{"ledgerd_source_calls_errors_total", "counter", "Calls to the node that is asked beside the stream that failed, and what was wrong in its answers, by kind.", s.Errors},
		})
	})
}

func write(w io.Writer, rows []figure) {
	for _, r := range rows {
		figures.Head(w, r.name, r.kind, r.help)
		if errors, byKind := r.value.([Kinds]uint64); byKind { // nothing that a node sends is a label
			for k, n := range errors {
				fmt.Fprintf(w, "%s{kind=%q} %d\n", r.name, Kind(k), n)
			}
			continue
		}
		fmt.Fprintln(w, r.name, r.value)
	}
}
