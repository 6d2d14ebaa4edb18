package top

import (
	"context"
	"flag"
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

var update = flag.Bool("update", false, "write the golden files anew")

// metrics returns what a node says after a count of updates, with a rollback for each hundred.
func metrics(t *testing.T, updates int) string {
	text := string(ledgertest.ReadFile(t, "testdata/metrics.txt"))
	return strings.NewReplacer("UPDATES", fmt.Sprint(updates), "ROLLBACKS", fmt.Sprint(updates/100)).Replace(text)
}

// text returns lines, each after a sign of its mood: + good, ! bad, . faint.
func text(lines []line) string {
	var b strings.Builder
	for _, l := range lines {
		b.WriteString(strings.TrimRight(" +!."[l.mood:l.mood+1]+" "+l.text, " ") + "\n")
	}
	return b.String()
}

// TestViewSaysWhatTheNodeSays shows a node that was started again after the first sample, and what becomes of it.
func TestViewSaysWhatTheNodeSays(t *testing.T) {
	v := &view{name: "http://h:1"}
	start := time.Unix(1300, 0)
	for i, updates := range []int{700, 0, 100, 400, 1000} {
		at := start.Add(time.Duration(i) * 2 * time.Second)
		v.take(news{at: at, sample: parseSample(metrics(t, updates), at), budget: budget{limit: 100, remaining: 87}, next: 5 * time.Second})
	}
	now := start.Add(15 * time.Second)
	var told strings.Builder
	show := func(what string, width int, at time.Time) {
		fmt.Fprintf(&told, "# %s\n\n%s\n", what, text(v.lines(width, at)))
	}
	show("A healthy node", 80, now)
	for _, l := range v.lines(80, now) {
		if n := len([]rune(l.text)); n > 80 {
			t.Errorf("a line of %d columns: %s", n, l.text)
		}
	}
	show("On a narrow terminal", 28, now)
	v.take(news{at: now, err: context.DeadlineExceeded, budget: v.budget, next: v.next})
	show("It does not answer", 80, now.Add(5*time.Second))
	v.take(news{at: now, sample: parseSample("ledgerd_healthy 0\nledgerd_account_updates_total 1\nledgerd_snapshot_age_seconds 0\n", now), why: "stopping"})
	show("It is back after a restart, without a snapshot, and about to stop", 80, now)
	ledgertest.Golden(t, "testdata/view.txt", told.String(), *update)
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
	healthy := metrics(t, 0)
	for name, quit := range map[string][]vt.Key{"q": {vt.KeyQ}, "Ctrl-C": {vt.KeyLCtrl, vt.KeyC}} {
		var lost atomic.Bool
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch {
			case lost.Load():
				panic(http.ErrAbortHandler)
			case r.URL.Path == "/api/metrics":
				fmt.Fprint(w, healthy)
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
