package top

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gdamore/tcell/v3"
	"github.com/gdamore/tcell/v3/vt"

	"ledgerd/engine/ledger/ledgertest"
)

// metrics returns what a node says after a count of updates, with a rollback for each hundred.
func metrics(updates int) string {
	return fmt.Sprintf(`# HELP ledgerd_slot Newest visible slot by commitment.
# TYPE ledgerd_slot gauge
ledgerd_build_info{version="1.2.3",revision="abc"} 1
process_start_time_seconds 1000
ledgerd_healthy 1
ledgerd_slot{commitment="processed"} 1605
ledgerd_slot{commitment="confirmed"} 1603
ledgerd_slot{commitment="finalized"} 1573
ledgerd_lag_seconds 0.345
ledgerd_account_updates_total %d
ledgerd_rollbacks_total %d
ledgerd_http_requests_total{route="account",status="2xx"} 40
ledgerd_http_requests_total{route="account",status="5xx"} 2
ledgerd_http_rate_limited_total{window="hour"} 3
ledgerd_http_connections 7
ledgerd_ws_connections 512
ledgerd_ws_frames_total 9
ledgerd_ws_closed_total{reason="slow_consumer"} 4
ledgerd_ws_closed_total{reason="client"} 100
ledgerd_ws_refused_total{reason="full"} 5
ledgerd_accounts{shard="0"} 5000
ledgerd_accounts{shard="1"} 5139
ledgerd_token_accounts{shard="0"} 2000
process_resident_memory_bytes 125378560
go_memstats_heap_alloc_bytes 9.7e+07
ledgerd_log_bytes 103732200
ledgerd_snapshot_age_seconds 777.02
ledgerd_snapshot_bytes 633005
ledgerd_snapshot_slot 908
`, updates, updates/100)
}

func text(lines []line) string {
	var b strings.Builder
	for _, l := range lines {
		b.WriteString(strings.TrimRight(l.text, " ") + "\n")
	}
	return b.String()
}

func TestViewSaysWhatTheNodeSays(t *testing.T) {
	v := &view{name: "http://h:1"}
	start := time.Unix(1300, 0)
	for i, updates := range []int{0, 0, 100, 400, 1000} {
		at := start.Add(time.Duration(i) * 2 * time.Second)
		v.take(news{at: at, sample: parseSample(metrics(updates), at), budget: budget{limit: 100, remaining: 87}, next: 5 * time.Second})
	}
	now := start.Add(15 * time.Second)
	figures := `slot        processed 1605 ─ confirmed 1603 ─ finalized 1573
lag         0.3 s
rollbacks   10

updates/s             300 ▁▂▅█
transactions/s          -
requests/s              0 ▁▁▁▁
frames/s                0 ▁▁▁▁

sockets     512          slow consumers 4          refused 5
connections 7            over a limit   3          errors  2
accounts    10139        token accounts 2000
memory      119.6 MiB    heap           92.5 MiB
log         98.9 MiB     snapshot       12m57s old, slot 908, 618.2 KiB

q quits   budget 87 of 100, asked every 5s
`
	want := "ledgerd 1.2.3 at http://h:1   up 5m08s\n● healthy\n\n" + figures
	ledgertest.Equal(t, text(v.lines(80, now)), want, "a healthy node")
	for _, l := range v.lines(80, now) {
		if n := len([]rune(l.text)); n > 80 {
			t.Errorf("a line of %d columns: %s", n, l.text)
		}
	}
	ledgertest.Contains(t, text(v.lines(28, now)), "updates/s             300 ▅█\n", "a narrow terminal")

	v.take(news{at: now, err: context.DeadlineExceeded, budget: v.budget, next: v.next})
	want = "ledgerd at http://h:1\n○ no answer for 5s: context deadline exceeded\n\n" + figures
	ledgertest.Equal(t, text(v.lines(80, now.Add(5*time.Second))), want, "a lost one")
	v.take(news{at: now, sample: parseSample("ledgerd_healthy 0\nledgerd_account_updates_total 1\n", now), why: "stopping"})
	if got := text(v.lines(80, now)); !strings.Contains(got, "\n● stopping\n") || !strings.Contains(got, "▁▂▅█") || !strings.Contains(got, "snapshot       none yet") {
		t.Errorf("back, after a restart:\n%s", got)
	}
}

func TestNodeIsAskedWithinHalfOfItsBudget(t *testing.T) {
	now := time.Unix(1000, 0)
	for name, tt := range map[string]struct {
		b    budget
		want time.Duration
	}{
		"no limit":          {budget{}, time.Second},
		"a fresh minute":    {budget{limit: 100, remaining: 98, reset: now.Add(time.Minute)}, 5 * time.Second},
		"half of an hour":   {budget{limit: 1000, remaining: 100, reset: now.Add(30 * time.Minute)}, 36 * time.Second},
		"nothing is left":   {budget{limit: 1000, remaining: 0, reset: now.Add(time.Hour)}, 5 * time.Minute},
		"it was refused":    {budget{limit: 100, retryAfter: 17 * time.Second}, 17 * time.Second},
		"a 503 says less":   {budget{limit: 100, remaining: 10, reset: now.Add(time.Minute), retryAfter: time.Second}, 12 * time.Second},
		"without a limit":   {budget{retryAfter: 3 * time.Second}, 3 * time.Second},
		"the clocks differ": {budget{limit: 100, remaining: 3, reset: now.Add(-time.Hour)}, 5 * time.Second},
	} {
		ledgertest.Equal(t, tt.b.pause(now), tt.want, "%s", name)
	}
}

// An unhealthy node is asked for the reason too, and both count. Where the listener is that for operators, the
// same is asked for there.
func TestNodeIsAskedAtTheDoorThereIs(t *testing.T) {
	const metrics = "ledgerd_healthy 0\n"
	for name, pages := range map[string]map[string]string{
		"public":    {"/api/metrics": metrics, "/api/health": `{"details":"stalled"}`},
		"operators": {"/metrics": metrics, "/readyz": `{"details":"stalled"}`},
		"neither":   {},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			page, found := pages[r.URL.Path]
			if name == "public" {
				w.Header().Set("X-RateLimit-Limit", "100")
				w.Header().Set("X-RateLimit-Remaining", "50")
			}
			switch {
			case !found:
				http.NotFound(w, r)
			case strings.Contains(page, "details"):
				w.Header().Set("Retry-After", "1")
				http.Error(w, page, http.StatusServiceUnavailable)
			default:
				fmt.Fprint(w, page)
			}
		}))
		n := newNode(server.Client(), server.URL+"/")
		for range 2 {
			a := n.ask(t.Context())
			want := map[string]news{
				"public": {why: "stalled", next: 2 * seldom}, "operators": {why: "stalled", next: oftenest}, "neither": {next: oftenest},
			}[name]
			if a.why != want.why || a.next != want.next || (a.err == nil) != (want.why != "") {
				t.Errorf("%s: %+v, want %+v", name, a, want)
			}
		}
		server.Close()
	}
}

// shown returns what stands on a terminal.
func shown(term vt.MockTerm) string {
	var b strings.Builder
	for y := range 24 {
		for x := range 80 {
			b.WriteString(term.GetCell(vt.Coord{X: vt.Col(x), Y: vt.Row(y)}).C)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func TestTopSurvivesTheLossOfTheNodeAndQuits(t *testing.T) {
	for name, quit := range map[string][]vt.Key{"q": {vt.KeyQ}, "Ctrl-C": {vt.KeyLCtrl, vt.KeyC}} {
		var lost atomic.Bool
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch {
			case lost.Load():
				panic(http.ErrAbortHandler)
			case r.URL.Path == "/api/metrics":
				fmt.Fprint(w, metrics(0))
			}
		}))
		term := vt.NewMockTerm(vt.MockOptSize{X: 80, Y: 24})
		screen, err := tcell.NewTerminfoScreenFromTty(term)
		ledgertest.Must(t, err)
		ended := make(chan error, 1)
		go func() { ended <- Run(t.Context(), server.Client(), server.URL, server.URL, screen) }()
		until := func(want string) {
			t.Helper()
			for !strings.Contains(shown(term), want) {
				select {
				case <-time.After(10 * time.Millisecond):
				case err := <-ended:
					t.Fatalf("%s: it ended, %v, before it showed %q:\n%s", name, err, want, shown(term))
				case <-t.Context().Done():
					t.Fatalf("%s: it does not show %q:\n%s", name, want, shown(term))
				}
			}
		}
		until("processed 1605")
		lost.Store(true)
		until("○ no answer")
		lost.Store(false)
		until("● healthy")
		term.KeyTap(quit...)
		ledgertest.Must(t, <-ended)
		server.Close()
	}
}
