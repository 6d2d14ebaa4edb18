package cluster

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"ledgerd/engine/figures"
	"ledgerd/engine/ledger"
)

// handover is how the term of a writer began, by its clock.
type handover struct {
	From  string  `json:"from,omitempty"` // the node that wrote in the term before; "" where it was not heard of
	Last  written `json:"last,omitzero"`  // the newest block before the term; zero: this node has seen none come
	First written `json:"first,omitzero"` // the oldest block of the term; zero: there is none yet
}

// written is a block of the log, and when it was stored there.
type written struct {
	Slot ledger.Slot `json:"slot"`
	At   time.Time   `json:"at"`
}

// isBlock reports whether a record is of a block. Records of other kinds are written also where no block comes.
func isBlock(r *ledger.Record) bool { return r.Kind == ledger.BlockRecord }

// noteFirst notes the first block of this node's term, if a commit has it.
func (l *Log) noteFirst(commit []*ledger.Record) {
	if i := slices.IndexFunc(commit, isBlock); i >= 0 {
		l.handover.Update(func(h *handover) {
			if h.First == (written{}) {
				h.First = written{commit[i].Slot, time.Now()}
			}
		})
	}
}

// writeHandover writes how the writer took over, by its own word; zeros where none tells.
func (c *Cluster) writeHandover(w io.Writer) {
	writer := c.writer()
	h := writer.Handover
	if h.From == "" && h.Last == (written{}) {
		writer.Node, h = "", handover{} // the first writer took nothing over
	}
	samples := func(name, help string, value func(written) float64) {
		figures.Head(w, name, "gauge", help)
		fmt.Fprintf(w, "%s{block=\"last\",node=%q} %s\n", name, h.From, strconv.FormatFloat(value(h.Last), 'f', -1, 64))
		fmt.Fprintf(w, "%s{block=\"first\",node=%q} %s\n", name, writer.Node, strconv.FormatFloat(value(h.First), 'f', -1, 64))
	}
	samples("ledgerd_cluster_handover_slot", "Slots of the last block of the writer before, and of the first one of the writer that took over; 0 while none is known.",
		func(b written) float64 { return float64(b.Slot) })
	samples("ledgerd_cluster_handover_time_seconds", "When these two blocks were stored in the log, in Unix time; 0 while none is known.",
		func(b written) float64 { return max(0, float64(b.At.UnixMilli())/1000) })
}
