package main

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/VictoriaMetrics/metrics"

	"ledgerd/engine/fill"
	"ledgerd/engine/ledger/ledgertest"
	"ledgerd/engine/sequencer"
	"ledgerd/engine/source/upstream"
)

var (
	metricFamily = regexp.MustCompile(`(?m)^# HELP (\S+) (.+\.)\n# TYPE (\S+) (\w+)\n((?:[^#\n].*\n)*)`)
	metricLabel  = regexp.MustCompile(`([A-Za-z]+)="`)
)

// scrapedRows returns what a scrape says as the lines of the table in the manual. Each sample comes after a sentence that says what it means, and its
// kind; what is wrong in names is promtool's to say.
func scrapedRows(t testing.TB, text string) (rows []string) {
	t.Helper()
	for _, m := range metricFamily.FindAllStringSubmatch(text, -1) {
		name, help, typed, kind, samples := m[1], m[2], m[3], m[4], m[5]
		var labels []string
		for _, label := range metricLabel.FindAllStringSubmatch(samples, -1) {
			if l := label[1]; l != "le" && l != "quantile" && !slices.Contains(labels, l) {
				labels = append(labels, l)
			}
		}
		for line := range strings.Lines(samples) {
			if typed != name || !strings.HasPrefix(line, name) {
				t.Errorf("%q is not told with its family", line)
			}
		}
		if len(labels) > 0 {
			name += "{" + strings.Join(labels, ", ") + "}"
		}
		rows = append(rows, "| `"+name+"` | "+kind+" | "+help+" |")
	}
	ledgertest.Equal(t, metricFamily.ReplaceAllString(text, ""), "", "what belongs to no family")
	return rows
}

// TestMetricsOfALiveSourceTellTheCause holds every figure against what happened.
func TestMetricsOfALiveSourceTellTheCause(t *testing.T) { synctest.Test(t, metricsOfALiveSource) }

func metricsOfALiveSource(t *testing.T) {
	var stats upstream.Stats
	stats.Disconnected(upstream.Dial)
	stats.Connected()
	stats.Disconnected(upstream.Stalled)
	stats.Connected()
	stats.Failed(upstream.RateLimited)
	stats.Failed(upstream.RateLimited)
	stats.Received(1000)
	stats.Received(24)
	stats.Sealed(100, 1)
	stats.Count(func(n *upstream.Snapshot) { n.Duplicates, n.Dead, n.Replays = 2, 1, 1 })
	stats.GapFound(100, 104)
	stats.GapRepaired()
	stats.GapFound(104, 105)
	stats.GapStuck(upstream.OutOfRange)
	stats.Saw(107)
	var text bytes.Buffer
	set := metrics.NewSet()
	upstream.Show(set, stats.Snapshot)
	upstream.ShowCalls(set, stats.Snapshot)
	set.WritePrometheus(&text)
	writeFill(&text, fill.Stats{On: true, Found: 3, Missing: 4, Unavailable: 5, Fetches: 6, Failures: 7, Keys: 8, Stale: 9, Waiting: 11})
	writeRollbacks(&text, sequencer.Counters{Rollbacks: 7, Undone: 50, RollbacksUpTo: [...]uint64{2, 3, 4, 5, 6, 7}})
	scrapedRows(t, text.String())
	ledgertest.Golden(t, "testdata/metrics.txt", text.String(), *update)
}
