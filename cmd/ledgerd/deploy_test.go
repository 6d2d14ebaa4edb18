package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/VictoriaMetrics/metrics"
	"go.yaml.in/yaml/v3"

	"ledgerd/engine/fill"
	"ledgerd/engine/ledger/ledgertest"
	"ledgerd/engine/sequencer"
	"ledgerd/engine/source/upstream"
)

// metricsPage is the page of the manual that lists all metrics and alerts.
const metricsPage = "../../httpd/console/manual/metrics.md"

// promtool runs promtool in the directory of what operators copy; it must find nothing wrong.
func promtool(t *testing.T, stdin string, args ...string) {
	t.Helper()
	needs(t, "promtool") // of Debian's package prometheus, which CI installs
	c := exec.Command("promtool", args...)
	c.Dir, c.Stdin = "deploy", strings.NewReader(stdin)
	if said, err := c.CombinedOutput(); err != nil {
		t.Errorf("promtool %v: %v\n%s", args, err, said)
	}
}

// Each alert fires when it should and no earlier, by alerts_test.yml; the sample configuration is one.
func TestPromtoolAcceptsRulesAndConfiguration(t *testing.T) {
	t.Parallel()
	promtool(t, "", "check", "config", "--lint-fatal", "prometheus.yml")
	promtool(t, "", "test", "rules", "alerts_test.yml")
}

// board is what the tests know of a dashboard of Grafana's.
type board struct {
	Panels []struct {
		Title, Description string
		Datasource         struct{ UID string }
		FieldConfig        struct {
			Defaults struct {
				Unit       string
				Thresholds struct{ Steps []struct{ Color string } }
			}
		}
		Targets []struct{ Expr string }
	}
}

// alertRules are what the tests know of alerts.yml.
type alertRules struct {
	Groups []struct {
		Rules []struct {
			Alert, Expr string
			Labels      struct{ Severity string }
			Annotations struct {
				Summary, Description string
				Runbook              string `yaml:"runbook_url"`
			}
		}
	}
}

// dashboardQueries returns the expressions of all panels, each of which says what it shows, and in which unit.
func dashboardQueries(t *testing.T) (queries []string) {
	t.Helper()
	files, _ := filepath.Glob("deploy/grafana/*.json")
	ledgertest.Equal(t, len(files), 3, "dashboards")
	for _, file := range files {
		var b board
		content := readFile(t, file)
		must(t, json.Unmarshal(content, &b))
		for _, p := range b.Panels {
			d := p.FieldConfig.Defaults
			if !strings.HasSuffix(p.Description, ".") || d.Unit == "" || len(d.Thresholds.Steps) == 0 || p.Datasource.UID != "${datasource}" {
				t.Errorf("%s: panel %q lacks a description, a unit, thresholds or the data source", file, p.Title)
			}
			for _, target := range p.Targets {
				queries = append(queries, strings.NewReplacer("$instance", ".*", "$__rate_interval", "1m").Replace(target.Expr))
			}
		}
	}
	return queries
}

// alertQueries returns the expressions of all alerts, each of which has a heading of its own in the manual, as has no other.
func alertQueries(t *testing.T) (queries []string) {
	t.Helper()
	var rules alertRules
	content := readFile(t, "deploy/alerts.yml")
	must(t, yaml.Unmarshal(content, &rules))
	page := readFile(t, metricsPage)
	headings := anchors(string(page))
	for _, group := range rules.Groups {
		for _, r := range group.Rules {
			queries = append(queries, r.Expr)
			of, anchor, _ := strings.Cut(r.Annotations.Runbook, "#")
			if !strings.HasSuffix(of, "/docs/metrics") || anchor != strings.ToLower(r.Alert) || !headings[anchor] {
				t.Errorf("%s: its runbook %s leads nowhere", r.Alert, r.Annotations.Runbook)
			}
			if a := r.Annotations; !slices.Contains([]string{"info", "warning", "critical"}, r.Labels.Severity) || a.Summary == "" || !strings.HasSuffix(a.Description, ".") {
				t.Errorf("%s lacks a severity, a summary or a description", r.Alert)
			}
		}
	}
	ledgertest.Equal(t, strings.Count(string(page), "\n### Ledgerd"), len(queries), "alerts that the manual tells of")
	return queries
}

// metricRow finds the rows of metrics among those of other tables.
var metricRow = regexp.MustCompile("^\\| `(ledgerd|go|process)_")

// selectors finds the metrics in an expression, with the labels that it asks for.
var selectors = regexp.MustCompile(`\b(?:ledgerd_|go_|process_)\w+(?:\{[^}]*\})?|\bup\{[^}]*\}`)

// A node that is alone, and one that is to follow a node and a cluster it does not reach, show all metrics there are between them. These are the
// ones that the manual lists, promtool finds nothing wrong with them, and Debian's prometheus finds each that dashboards and alerts ask for.
func TestMetricsAreTheOnesThatManualDashboardsAndAlertsName(t *testing.T) {
	t.Parallel()
	keys := filepath.Join(t.TempDir(), "keys.yaml")
	ledgertest.Must(t, os.WriteFile(keys, []byte("tiers: {gold: {}}"), 0o600))
	alone := launch(t, "--data-dir", t.TempDir(), "--source", "sim:accounts=100", "--api-keys", keys, "--access-log", keys+".log",
		"--rpc-listen", "127.0.0.1:0", "--rpc-forward", "http://127.0.0.1:1")
	connected := launch(t, "--data-dir", t.TempDir(), "--source", "geyser:http://127.0.0.1:1?rpc=http://127.0.0.1:1", "--fill", "on-demand",
		"--log", "nats://127.0.0.1:1/LEDGER")
	alone.ready()
	connected.listens()

	page := readFile(t, metricsPage)
	rows, tellsFence := map[string]bool{}, false
	for line := range strings.Lines(string(page)) {
		if metricRow.MatchString(line) {
			rows[strings.TrimSpace(line)] = false
		}
	}
	for _, address := range []string{alone.ops, alone.base, connected.ops} {
		a, err := ask(client, address+"/metrics")
		must(t, err)
		t.Run("promtool", func(t *testing.T) { promtool(t, a.body, "check", "metrics") })
		for _, row := range scrapedRows(t, a.body) {
			if _, told := rows[row]; !told {
				t.Errorf("the manual lacks\n%s", row)
			}
			rows[row] = true
			tellsFence = tellsFence || address == alone.ops && strings.Contains(row, "`ledgerd_fenced`")
			if address != connected.ops && regexp.MustCompile("`ledgerd_(source|fill|cluster)_").MatchString(row) {
				t.Errorf("a node that is alone tells\n%s", row)
			}
		}
	}
	if !tellsFence {
		t.Error("a node that is alone does not tell whether it fenced itself off")
	}
	for row, found := range rows {
		if !found {
			t.Errorf("no node shows what the manual tells:\n%s", row)
		}
	}

	queries, alerts := dashboardQueries(t), alertQueries(t)
	t.Run("prometheus", func(t *testing.T) {
		ask := scrapeInto(t, strings.TrimPrefix(alone.ops, "http://"), strings.TrimPrefix(connected.ops, "http://"))
		for _, expression := range slices.Concat(queries, alerts) {
			queries = append(queries, selectors.FindAllString(expression, -1)...)
		}
		slices.Sort(queries)
		for _, query := range slices.Compact(queries) {
			if ask(query) == 0 {
				t.Errorf("prometheus finds nothing for %s", query)
			}
		}
	})
}

// scrapeInto runs a prometheus that scrapes nodes, and returns what asks it how many series an expression had when it had scraped each twice.
func scrapeInto(t *testing.T, nodes ...string) (ask func(query string) int) {
	t.Helper()
	needs(t, "prometheus")
	dir := t.TempDir()
	rules, err := filepath.Abs("deploy/alerts.yml")
	must(t, err)
	config := fmt.Sprintf(`{global: {scrape_interval: 1s, scrape_timeout: 1s}, rule_files: [%q], scrape_configs: [{job_name: ledgerd, static_configs: [{targets: ["%s"]}]}]}`,
		rules, strings.Join(nodes, `", "`))
	file := filepath.Join(dir, "prometheus.yml")
	must(t, os.WriteFile(file, []byte(config), 0o600))
	address := freeAddress(t)
	p := launchWords(t, "prometheus", "--config.file", file, "--storage.tsdb.path", dir, "--web.listen-address", address, "--log.level", "warn")
	at := ""
	ask = func(query string) int {
		a, err := p.ask("http://" + address + "/api/v1/query?time=" + at + "&query=" + url.QueryEscape(query))
		var found struct {
			Status, Error string
			Data          struct{ Result []json.RawMessage }
		}
		if err != nil || json.Unmarshal([]byte(a.body), &found) != nil {
			return 0 // it does not listen yet
		}
		if found.Status != "success" && a.status < 500 {
			t.Errorf("%s: %s", query, found.Error)
		}
		return len(found.Data.Result)
	}
	p.until("each node was scraped twice", func() bool {
		at = time.Now().UTC().Format(time.RFC3339Nano)
		return ask("ledgerd_build_info and count_over_time(ledgerd_build_info[1m]) > 1") == len(nodes)
	})
	return ask
}

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
