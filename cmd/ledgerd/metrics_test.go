package main

import (
	"bytes"
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
	metricName   = regexp.MustCompile(`^ledgerd(_[a-z0-9]+)+$`)
	metricSample = regexp.MustCompile(`^([a-z0-9_]+?)(_bucket|_sum|_count)?(?:\{((?:[a-z]+="[^"\\]*",?)+)\})? (\S+)$`)
	metricLabel  = regexp.MustCompile(`([a-z]+)="([^"]*)"`)
	// wrongInName are units that Prometheus does without, words that the kind says already, and ends that are kept for others.
	wrongInName = regexp.MustCompile(`_(ms|millis|milliseconds|minutes|kb|mb|counter|gauge|histogram|current|bucket|sum|count|info)(_total)?$`)
)

// labelValues is how many values a label may have: every one is ours, and a series costs memory
// wherever it is stored.
const labelValues = 64

// metricFamily is what a scrape says under one name.
type metricFamily struct {
	name, help, kind string
	lines            []string
}

// lintMetrics holds our families of a scrape against the Prometheus conventions, as promtool does,
// and against our own: bounded labels, and a sentence of help.
func lintMetrics(t testing.TB, text string) metricKinds {
	t.Helper()
	kinds := metricKinds{}
	var families []*metricFamily
	now := &metricFamily{}
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		words := strings.SplitN(line, " ", 4)
		switch {
		case strings.HasPrefix(line, "# HELP ledgerd"):
			now = &metricFamily{name: words[2], help: words[3]}
			families = append(families, now)
		case strings.HasPrefix(line, "# TYPE ledgerd"):
			if words[2] != now.name || kinds[now.name] != "" {
				t.Errorf("%q: the type is told twice, or not after the help", line)
			}
			now.kind, kinds[words[2]] = words[3], words[3]
		case strings.HasPrefix(line, "ledgerd"):
			now.lines = append(now.lines, line)
		default:
			now = &metricFamily{}
		}
		if now.name == "" && strings.HasPrefix(line, "ledgerd") {
			t.Errorf("%q is not told with its family", line)
		}
	}
	for _, f := range families {
		f.lint(t)
	}
	return kinds
}

func (f *metricFamily) lint(t testing.TB) {
	t.Helper()
	if !metricName.MatchString(f.name) || wrongInName.MatchString(f.name) && f.name != "ledgerd_build_info" {
		t.Errorf("%s is no name of ours", f.name)
	}
	if !strings.HasSuffix(f.help, ".") || len(f.help) < 10 {
		t.Errorf("%s: help %q, want a sentence", f.name, f.help)
	}
	if f.kind == "" || strings.HasSuffix(f.name, "_total") != (f.kind == "counter") {
		t.Errorf("%s is a %q: counters, and no others, end in _total", f.name, f.kind)
	}
	series, values := map[string]bool{}, map[string]map[string]bool{}
	for _, line := range f.lines {
		m := metricSample.FindStringSubmatch(line)
		if m == nil || m[1] != f.name || (m[2] != "") != (f.kind == "histogram") {
			t.Errorf("%q is no sample of %s %s", line, f.kind, f.name)
			continue
		}
		value, err := strconv.ParseFloat(m[4], 64)
		key, _, _ := strings.Cut(line, " ")
		if err != nil || math.IsNaN(value) || value < 0 && f.kind != "gauge" || series[key] {
			t.Errorf("%q has a bad value, or comes twice", line)
		}
		series[key] = true
		labels := metricLabel.FindAllStringSubmatch(m[3], -1)
		for i, label := range labels {
			if values[label[1]] == nil {
				values[label[1]] = map[string]bool{}
			}
			values[label[1]][label[2]] = true
			if slices.ContainsFunc(labels[:i], func(before []string) bool { return before[1] == label[1] }) {
				t.Errorf("%q names a label twice", line)
			}
		}
	}
	for label, all := range values {
		if len(all) > labelValues && f.kind != "histogram" {
			t.Errorf("%s: label %s has %d values", f.name, label, len(all))
		}
	}
}

func TestMetricsAreWellFormed(t *testing.T) {
	t.Parallel()
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
		`ledgerd_rollback_depth_blocks_bucket{le="1"} 2`, `ledgerd_rollback_depth_blocks_bucket{le="+Inf"} 7`, "ledgerd_rollback_depth_blocks_count 7",
	} {
		if !strings.Contains(text.String(), "\n"+want+"\n") {
			t.Errorf("%q is missing", want)
		}
	}
	if t.Failed() {
		t.Log(text.String())
	}
}
