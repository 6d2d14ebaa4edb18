// Package promtext writes metrics in the Prometheus text format, with HELP lines, and counts durations in
// buckets with "le" labels: the metrics library has neither. A writer's errors are left to its owner.
package promtext

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"sync/atomic"

	"ledgerd/engine/figures"
)

// Counter has a cache line of its own, so that cores that count different things do not take it
// from each other.
type Counter struct {
	atomic.Uint64
	_ [64 - 8]byte
}

// Sample writes one sample, of an integer or a float64. labels is empty or a list like `route="account"`.
func Sample(w io.Writer, name, labels string, value any) {
	if labels != "" {
		name += "{" + labels + "}"
	}
	_, _ = fmt.Fprintf(w, "%s %v\n", name, value)
}

// Value writes a family of one sample.
func Value(w io.Writer, name, kind, help string, value uint64) {
	figures.Head(w, name, kind, help)
	Sample(w, name, "", value)
}

// Each writes a family of samples that differ in the value of one label, in the order of these.
func Each(w io.Writer, name, kind, help, label string, samples map[string]uint64) {
	figures.Head(w, name, kind, help)
	for _, value := range slices.Sorted(maps.Keys(samples)) {
		Sample(w, name, fmt.Sprintf("%s=%q", label, value), samples[value])
	}
}
