// Package figures registers what a part of a node counts on a metrics.Set: one line of code names a figure, says what it
// means, and makes the counter or reads the gauge. The set writes HELP and TYPE lines with it, which the library
// does not.
package figures

import (
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/VictoriaMetrics/metrics"
)

// Counter returns a counter that the set writes under a name.
func Counter(set *metrics.Set, name, help string) *metrics.Counter {
	c := new(metrics.Counter)
	family(set, name, "counter", help, func(w io.Writer) { fmt.Fprintln(w, name, c.Get()) })
	return c
}

// Counters returns a counter for each value of a label, which the set writes under one name.
func Counters(set *metrics.Set, name, help, label string, values ...string) map[string]*metrics.Counter {
	counters, values := make(map[string]*metrics.Counter), slices.Sorted(slices.Values(values))
	for _, v := range values {
		counters[v] = new(metrics.Counter)
	}
	Each(set, name, "counter", help, label, values, func(i int) uint64 { return counters[values[i]].Get() })
	return counters
}

// Gauge has the set write the value under a name. value is called by each scrape, from any goroutine.
func Gauge(set *metrics.Set, name, help string, value func() float64) {
	family(set, name, "gauge", help, func(w io.Writer) {
		fmt.Fprintln(w, name, strconv.FormatFloat(value(), 'f', -1, 64)) // no exponents
	})
}

// Each has the set write a counter or gauge with one sample for each value of a label. value returns the sample of the i-th.
func Each(set *metrics.Set, name, kind, help, label string, labels []string, value func(i int) uint64) {
	family(set, name, kind, help, func(w io.Writer) {
		for i, l := range labels {
			fmt.Fprintf(w, "%s{%s=%q} %d\n", name, label, l, value(i))
		}
	})
}

func family(set *metrics.Set, name, kind, help string, samples func(io.Writer)) {
	set.RegisterMetricsWriter(func(w io.Writer) {
		Head(w, name, kind, help)
		samples(w)
	})
}

// Head writes what stands before the samples of a figure.
func Head(w io.Writer, name, kind, help string) {
	fmt.Fprintf(w, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind)
}

// One returns 1 for true and 0 for false.
func One(is bool) float64 {
	if is {
		return 1
	}
	return 0
}
