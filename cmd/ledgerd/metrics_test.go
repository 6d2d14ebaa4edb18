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
	metricHead   = regexp.MustCompile(`^# (HELP|TYPE) (\S+) ?(.*)$`)
	metricSample = regexp.MustCompile(`^([a-z0-9_]+)(?:\{(.*)\})? \S+$`)
	metricLabel  = regexp.MustCompile(`([A-Za-z]+)="([^"]*)"`)
)

// labelValues is how many values a label may have: every one is ours, and a series costs memory
// wherever it is stored.
const labelValues = 64

// metricFamily is what a scrape says under one name.
type metricFamily struct {
	name, help, kind string
	labels           []string
}

// row is the line of the family in the table of the manual.
func (f *metricFamily) row() string {
	name := f.name
	if labels := slices.DeleteFunc(slices.Clone(f.labels), func(l string) bool { return l == "le" || l == "quantile" }); len(labels) > 0 {
		name += "{" + strings.Join(labels, ", ") + "}"
	}
	return "| `" + name + "` | " + f.kind + " | " + f.help + " |"
}

// readMetrics returns the families of a scrape. Each says what it means, and of which kind it is, before its samples, and its labels are bounded;
// what is wrong in names is promtool's to say.
func readMetrics(t testing.TB, text string) (families []*metricFamily) {
	t.Helper()
	f, values := &metricFamily{}, map[string]map[string]bool{}
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if head := metricHead.FindStringSubmatch(line); head != nil && head[1] == "HELP" {
			f, values = &metricFamily{name: head[2], help: head[3]}, map[string]map[string]bool{}
			families = append(families, f)
			if !strings.HasSuffix(f.help, ".") || len(f.help) < 8 {
				t.Errorf("%s: help %q, want a sentence", f.name, f.help)
			}
			continue
		} else if head != nil && head[2] == f.name && f.kind == "" {
			f.kind = head[3]
			continue
		}
		m := metricSample.FindStringSubmatch(line)
		if m == nil || f.kind == "" || !strings.HasPrefix(m[1], f.name) {
			t.Errorf("%q is not told with its family", line)
			continue
		}
		for _, label := range metricLabel.FindAllStringSubmatch(m[2], -1) {
			if values[label[1]] == nil {
				values[label[1]], f.labels = map[string]bool{}, append(f.labels, label[1])
			}
			if values[label[1]][label[2]] = true; len(values[label[1]]) > labelValues {
				t.Errorf("%s: label %s has more than %d values", f.name, label[1], labelValues)
			}
		}
	}
	return families
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
	readMetrics(t, text.String())
	ledgertest.Golden(t, "testdata/metrics.txt", text.String(), *update)
}
