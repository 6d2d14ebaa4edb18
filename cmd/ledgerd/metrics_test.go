package main

import (
	"bytes"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/VictoriaMetrics/metrics"

	"ledgerd/engine/fill"
	"ledgerd/engine/sequencer"
	"ledgerd/engine/source/upstream"
)

// metricKinds are the families of a scrape, by name.
type metricKinds map[string]string

var (
	metricName  = regexp.MustCompile(`^ledgerd(_[a-z0-9]+)+$`)
	metricLine  = regexp.MustCompile(`^([a-z0-9_]+)(?:\{(.*)\})? (\S+)$`)
	metricLabel = regexp.MustCompile(`^([a-z]+)="([^"\\\n]*)"$`)
)

// labelValues is how many values a label may have: every one is ours, and a series costs memory
// wherever it is stored.
const labelValues = 64

// wrongInName are units that Prometheus does without, and words that the kind says already.
var wrongInName = []string{"_ms", "_millis", "_milliseconds", "_minutes", "_kb", "_mb", "_counter", "_gauge", "_histogram", "_current"}

// complainer is what a check complains to.
type complainer interface {
	Helper()
	Errorf(format string, args ...any)
}

// complaints only counts them.
type complaints int

func (c *complaints) Helper()               {}
func (c *complaints) Errorf(string, ...any) { *c++ }

// lintMetrics holds our families of a scrape against the Prometheus conventions, as promtool does,
// and against our own: bounded labels, and a sentence of help.
func lintMetrics(t complainer, text string) metricKinds {
	t.Helper()
	kinds, help, over := metricKinds{}, map[string]string{}, map[string]bool{}
	series, values := map[string]float64{}, map[string]map[string]bool{}
	current := ""
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if rest, is := strings.CutPrefix(line, "# HELP ledgerd"); is {
			name, words, _ := strings.Cut("ledgerd"+rest, " ")
			if help[name] != "" || !strings.HasSuffix(words, ".") || len(words) < 10 {
				t.Errorf("%s: help %q, want one sentence, once", name, words)
			}
			help[name] = words
			continue
		}
		if rest, is := strings.CutPrefix(line, "# TYPE ledgerd"); is {
			name, kind, _ := strings.Cut("ledgerd"+rest, " ")
			over[current], current = true, name
			if kinds[name] != "" || help[name] == "" {
				t.Errorf("%s: its type is told twice, or before its help", name)
			}
			kinds[name] = kind
			lintName(t, name, kind)
			continue
		}
		if !strings.HasPrefix(line, "ledgerd") {
			if !strings.HasPrefix(line, "#") {
				over[current], current = true, ""
			}
			continue
		}
		m := metricLine.FindStringSubmatch(line)
		if m == nil {
			t.Errorf("%q is no sample", line)
			continue
		}
		name, labels := m[1], m[2]
		family := familyOf(kinds, name)
		if family == "" || family != current || over[family] {
			t.Errorf("%q is not told with its family, of which there is one", line)
		}
		key := name + "{" + labels + "}"
		if _, twice := series[key]; twice {
			t.Errorf("%s is told twice", key)
		}
		value, err := strconv.ParseFloat(m[3], 64)
		if err != nil || math.IsNaN(value) || value < 0 && kinds[family] != "gauge" {
			t.Errorf("%q has a bad value", line)
		}
		series[key] = value
		lintLabels(t, line, labels, family, values)
	}
	for name := range values {
		if n := len(values[name]); n > labelValues {
			t.Errorf("%s has %d values", name, n)
		}
	}
	lintHistograms(t, kinds, text, series)
	return kinds
}

func lintName(t complainer, name, kind string) {
	t.Helper()
	if !metricName.MatchString(name) {
		t.Errorf("%q is no name of ours", name)
	}
	if strings.HasSuffix(name, "_total") != (kind == "counter") {
		t.Errorf("%s is a %s: counters, and no others, end in _total", name, kind)
	}
	for _, wrong := range wrongInName {
		if strings.HasSuffix(strings.TrimSuffix(name, "_total"), wrong) {
			t.Errorf("%s ends in %s", name, wrong)
		}
	}
	for _, suffix := range []string{"_bucket", "_sum", "_count", "_info"} {
		if strings.HasSuffix(name, suffix) && name != "ledgerd_build_info" {
			t.Errorf("%s ends in %s, which is kept for others", name, suffix)
		}
	}
}

// familyOf returns the family of a sample.
func familyOf(kinds metricKinds, sample string) string {
	if kinds[sample] != "" {
		return sample
	}
	for _, suffix := range []string{"_bucket", "_sum", "_count"} {
		if base, is := strings.CutSuffix(sample, suffix); is && kinds[base] == "histogram" {
			return base
		}
	}
	return ""
}

func lintLabels(t complainer, line, labels, family string, values map[string]map[string]bool) {
	t.Helper()
	if labels == "" {
		return
	}
	var names []string
	for label := range strings.SplitSeq(labels, ",") {
		m := metricLabel.FindStringSubmatch(label)
		if m == nil {
			t.Errorf("%q: %q is no label", line, label)
			return
		}
		names = append(names, m[1])
		key := family + " label " + m[1]
		if values[key] == nil {
			values[key] = map[string]bool{}
		}
		values[key][m[2]] = true
	}
	if slices.Sort(names); len(slices.Compact(slices.Clone(names))) != len(names) {
		t.Errorf("%q names a label twice", line)
	}
}

// lintHistograms checks that buckets grow to the count.
func lintHistograms(t complainer, kinds metricKinds, text string, series map[string]float64) {
	t.Helper()
	last, bound := map[string]float64{}, map[string]float64{}
	seen := map[string]bool{}
	for line := range strings.Lines(text) {
		m := metricLine.FindStringSubmatch(strings.TrimSpace(line))
		if m == nil {
			continue
		}
		base, is := strings.CutSuffix(m[1], "_bucket")
		if !is || kinds[base] != "histogram" {
			continue
		}
		at := strings.LastIndex(m[2], `le="`)
		if at < 0 {
			t.Errorf("%q has no bound", line)
			continue
		}
		others := strings.TrimSuffix(m[2][:at], ",")
		key := base + "{" + others + "}"
		text := strings.TrimSuffix(m[2][at+len(`le="`):], `"`)
		le, err := strconv.ParseFloat(text, 64)
		value := series[m[1]+"{"+m[2]+"}"]
		if err != nil || seen[key] && le <= bound[key] || value < last[key] {
			t.Errorf("%q: bounds and buckets must grow", strings.TrimSpace(line))
		}
		seen[key], bound[key], last[key] = true, le, value
	}
	for key := range seen {
		count := series[strings.Replace(key, "{", "_count{", 1)]
		if _, hasSum := series[strings.Replace(key, "{", "_sum{", 1)]; !hasSum || !math.IsInf(bound[key], 1) || last[key] != count {
			t.Errorf("%s: the last bucket is %v up to %v, the count %v, a sum: %v", key, last[key], bound[key], count, hasSum)
		}
	}
}

func TestMetricsAreWellFormed(t *testing.T) {
	r := start(t, "--data-dir", t.TempDir(), "--source", "sim:accounts=100,slots=5,slot_time=0")
	_, body := get(t, r.ops+"/metrics")
	kinds := lintMetrics(t, string(body))
	for _, name := range []string{"ledgerd_slot", "ledgerd_accounts", "ledgerd_http_requests_total", "ledgerd_ws_connections", "ledgerd_shard_mailbox_depth", "ledgerd_rollbacks_total",
		"ledgerd_rollback_depth_blocks", "ledgerd_log_durable_slot", "ledgerd_log_written_bytes_total", "ledgerd_log_fsync_duration_seconds", "ledgerd_ingest_duration_seconds", "ledgerd_snapshots_total", "ledgerd_snapshot_running"} {
		if kinds[name] == "" {
			t.Errorf("metric %s is missing", name)
		}
	}
	for name := range kinds {
		if strings.HasPrefix(name, "ledgerd_source_") || strings.HasPrefix(name, "ledgerd_fill_") {
			t.Errorf("metric %s is told of a source that follows no node", name)
		}
	}
}

// TestMetricsOfALiveSourceTellTheCause holds every figure against what happened.
func TestMetricsOfALiveSourceTellTheCause(t *testing.T) {
	var stats upstream.Stats
	stats.Disconnected(upstream.Dial)
	stats.Connected()
	stats.Disconnected(upstream.Stalled)
	stats.Connected()
	stats.Failed(upstream.RateLimited)
	stats.Failed(upstream.RateLimited)
	stats.Replayed()
	stats.Received(1000)
	stats.Received(24)
	stats.Sealed(100)
	stats.Duplicate()
	stats.Duplicate()
	stats.Dead()
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
	lintMetrics(t, text.String())
	for _, want := range []string{
		"ledgerd_source_connected 1", "ledgerd_source_reconnects_total 1", "ledgerd_source_replays_total 1",
		"ledgerd_source_messages_total 2", "ledgerd_source_received_bytes_total 1024", "ledgerd_source_blocks_total 1",
		"ledgerd_source_duplicates_total 2", "ledgerd_source_dead_slots_total 1",
		"ledgerd_source_upstream_slot 107", "ledgerd_source_slot 100", "ledgerd_source_lag_slots 7",
		"ledgerd_source_gaps_total 2", "ledgerd_source_gap_slots_total 5", "ledgerd_source_gaps_repaired_total 1",
		"ledgerd_source_gap_open 1", "ledgerd_source_gap_stuck 1",
		`ledgerd_source_errors_total{kind="dial"} 1`, `ledgerd_source_errors_total{kind="stalled"} 1`,
		`ledgerd_source_errors_total{kind="rate_limited"} 2`, `ledgerd_source_errors_total{kind="garbage"} 0`,
		"ledgerd_source_calls_connected 1", "ledgerd_source_calls_answers_total 2", "ledgerd_source_calls_received_bytes_total 1024",
		`ledgerd_source_calls_errors_total{kind="rate_limited"} 2`,
		`ledgerd_fill_answers_total{answer="hit"} 3`, `ledgerd_fill_answers_total{answer="miss"} 4`, `ledgerd_fill_answers_total{answer="unavailable"} 5`,
		"ledgerd_fill_fetches_total 6", "ledgerd_fill_fetch_failures_total 7", "ledgerd_fill_fetched_accounts_total 8",
		"ledgerd_fill_stale_accounts_total 9", "ledgerd_fill_waiting_accounts 11",
		`ledgerd_rollback_depth_blocks_bucket{le="32"} 7`, "ledgerd_rollback_depth_blocks_sum 50",
	} {
		if !strings.Contains(text.String(), "\n"+want+"\n") {
			t.Errorf("%q is missing", want)
		}
	}
	if t.Failed() {
		t.Log(text.String())
	}
}

// TestLintFindsWhatIsWrong holds the check itself against families that are.
func TestLintFindsWhatIsWrong(t *testing.T) {
	head := func(name, kind string) string {
		return fmt.Sprintf("# HELP %s What it says.\n# TYPE %s %s\n", name, name, kind)
	}
	var many strings.Builder
	for i := range labelValues + 1 {
		fmt.Fprintf(&many, "ledgerd_x_total{key=\"%d\"} 1\n", i)
	}
	const h = "ledgerd_h_seconds"
	wrong := map[string]string{
		"no help":               "# TYPE ledgerd_x gauge\nledgerd_x 1\n",
		"help is no sentence":   "# HELP ledgerd_x some words here\n# TYPE ledgerd_x gauge\nledgerd_x 1\n",
		"no family":             "ledgerd_x 1\n",
		"counter without total": head("ledgerd_x", "counter") + "ledgerd_x 1\n",
		"gauge with total":      head("ledgerd_x_total", "gauge") + "ledgerd_x_total 1\n",
		"milliseconds":          head("ledgerd_lag_ms", "gauge") + "ledgerd_lag_ms 1\n",
		"a kept suffix":         head("ledgerd_x_count", "gauge") + "ledgerd_x_count 1\n",
		"capitals":              head("ledgerd_Lag", "gauge"),
		"twice":                 head("ledgerd_x", "gauge") + "ledgerd_x 1\nledgerd_x 2\n",
		"torn apart":            head("ledgerd_x", "gauge") + head("ledgerd_y", "gauge") + "ledgerd_y 1\nledgerd_x 1\n",
		"no number":             head("ledgerd_x", "gauge") + "ledgerd_x one\n",
		"a negative counter":    head("ledgerd_x_total", "counter") + "ledgerd_x_total -1\n",
		"a label of input":      head("ledgerd_x_total", "counter") + "ledgerd_x_total{key=\"a\\\"b\"} 1\n",
		"a label twice":         head("ledgerd_x", "gauge") + "ledgerd_x{a=\"1\",a=\"2\"} 1\n",
		"labels without bound":  head("ledgerd_x_total", "counter") + many.String(),
		"buckets that shrink":   head(h, "histogram") + h + "_bucket{le=\"1\"} 2\n" + h + "_bucket{le=\"+Inf\"} 1\n" + h + "_sum 1\n" + h + "_count 1\n",
		"no last bucket":        head(h, "histogram") + h + "_bucket{le=\"1\"} 2\n" + h + "_sum 1\n" + h + "_count 2\n",
		"another count":         head(h, "histogram") + h + "_bucket{le=\"+Inf\"} 2\n" + h + "_sum 1\n" + h + "_count 3\n",
		"no sum":                head(h, "histogram") + h + "_bucket{le=\"+Inf\"} 2\n" + h + "_count 2\n",
	}
	for name, text := range wrong {
		var found complaints
		if lintMetrics(&found, text); found == 0 {
			t.Errorf("%s: not found in\n%s", name, text)
		}
	}
}
