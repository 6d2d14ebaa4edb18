package main

import (
	"bytes"
	"io"
	"regexp"
	"strings"
	"sync"

	"ledgerd/engine/figures"
	"ledgerd/httpd/console"
)

// withHelp writes what the metrics library writes of the process or the Go runtime. The library, once asked
// to by ExposeMetadata, writes HELP lines without a text, calls counts of the kernel gauges, and calls
// two metrics counters whose names Prometheus keeps for others: what the manual says of each stands there instead.
func withHelp(w io.Writer, write func(io.Writer)) {
	var library bytes.Buffer
	write(&library)
	for line := range strings.Lines(library.String()) {
		if name, isHelp := strings.CutPrefix(line, "# HELP "); isHelp {
			name = strings.TrimSpace(name)
			row := manualMetrics()[name]
			figures.Head(w, name, row.kind, row.help)
		} else if !strings.HasPrefix(line, "# TYPE ") {
			_, _ = io.WriteString(w, line)
		}
	}
}

// manualRow is what the manual says of a metric.
type manualRow struct{ kind, help string }

var metricRows = regexp.MustCompile("(?m)^\\| `(\\w+)[^`]*` \\| (\\w+) \\| (.*) \\|$")

// manualMetrics returns what the manual says of metrics, by name.
var manualMetrics = sync.OnceValue(func() map[string]manualRow {
	rows := make(map[string]manualRow)
	for _, m := range metricRows.FindAllStringSubmatch(console.ManualText("metrics.md"), -1) {
		rows[m[1]] = manualRow{m[2], m[3]}
	}
	return rows
})
