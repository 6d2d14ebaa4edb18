package top

import (
	"fmt"
	"strings"
	"time"
)

// mood is how a line is coloured.
type mood int

const (
	plain mood = iota
	good
	bad
	faint
)

// line is a line of the view.
type line struct {
	text string
	mood mood
}

// view is what is known of a node. The zero view has asked nothing.
type view struct {
	name   string
	why    string
	budget budget
	next   time.Duration
	now    *sample // the newest; nil: none yet
	lost   error   // why the node did not answer last
	lostAt time.Time
	rates  [len(rates)]history
}

// rates are the counters that are shown by second.
var rates = [...]struct{ name, family, label string }{
	{"updates/s", "ledgerd_account_updates_total", ""},
	{"transactions/s", "ledgerd_transactions_total", ""},
	{"requests/s", "ledgerd_http_requests_total", ""},
	{"frames/s", "ledgerd_ws_frames_total", ""},
}

// history is a rate over time, the newest last. A negative value is not known.
type history []float64

// historyLength is more than the columns of any terminal that shows it.
const historyLength = 512

func (h *history) add(value float64) {
	*h = append(*h, value)
	*h = (*h)[max(0, len(*h)-historyLength):]
}

// take takes over what came of asking.
func (v *view) take(a news) {
	v.budget, v.next = a.budget, a.next
	if a.err != nil {
		if v.lost == nil {
			v.lostAt = a.at
		}
		v.lost = a.err
		return
	}
	before := v.now
	if v.lost != nil {
		before = nil // it may have been started again: the difference tells nothing
	}
	v.now, v.why, v.lost = a.sample, a.why, nil
	if before == nil {
		return
	}
	for i, r := range rates {
		v.rates[i].add(perSecond(before, v.now, r.family, r.label))
	}
}

// perSecond returns how fast a counter grew between two samples; negative: nobody knows.
func perSecond(before, now *sample, family, label string) float64 {
	from, known := before.sum(family, label)
	to, still := now.sum(family, label)
	took := now.at.Sub(before.at).Seconds()
	if !known || !still || took <= 0 {
		return -1
	}
	return (to - from) / took // negative after a restart
}

// lines returns the view as text of a width.
func (v *view) lines(width int, at time.Time) []line {
	out := v.head(at)
	if v.now != nil {
		shade := plain
		if v.lost != nil {
			shade = faint
		}
		for _, text := range v.body(width) {
			out = append(out, line{text, shade})
		}
	}
	return append(out, line{}, line{v.foot(), faint})
}

// head says who the node is and how it is.
func (v *view) head(at time.Time) []line {
	switch {
	case v.lost != nil:
		return []line{{"ledgerd at " + v.name, plain}, {fmt.Sprintf("○ no answer for %s: %v", age(at.Sub(v.lostAt)), v.lost), bad}, {}}
	case v.now == nil:
		return []line{{"ledgerd at " + v.name, plain}, {"○ asking", faint}, {}}
	}
	name := fmt.Sprintf("ledgerd %s at %s", v.now.version(), v.name)
	if started, known := v.now.sum("process_start_time_seconds", ""); known {
		name += "   up " + age(v.now.at.Sub(time.Unix(int64(started), 0)))
	}
	if v.why != "" {
		return []line{{name, plain}, {"● " + v.why, bad}, {}}
	}
	return []line{{name, plain}, {"● healthy", good}, {}}
}

// body says what the newest sample and those before it tell.
func (v *view) body(width int) []string {
	n := v.now.value
	out := []string{
		fmt.Sprintf("slot        processed %.0f ─ confirmed %.0f ─ finalized %.0f", n("ledgerd_slot", "processed"), n("ledgerd_slot", "confirmed"), n("ledgerd_slot", "finalized")),
		fmt.Sprintf("lag         %.1f s", n("ledgerd_lag_seconds", "")),
		fmt.Sprintf("rollbacks   %.0f", n("ledgerd_rollbacks_total", "")),
		"",
	}
	for i, r := range rates {
		out = append(out, chart(r.name, v.rates[i], width))
	}
	snapshot := "none yet"
	if seconds, known := v.now.sum("ledgerd_snapshot_age_seconds", ""); known && n("ledgerd_snapshot_bytes", "") > 0 {
		snapshot = fmt.Sprintf("%s old, slot %.0f, %s", age(time.Duration(seconds*float64(time.Second))), n("ledgerd_snapshot_slot", ""), size(n("ledgerd_snapshot_bytes", "")))
	}
	return append(out,
		"",
		fmt.Sprintf("sockets     %-12.0f slow consumers %-10.0f refused %.0f", n("ledgerd_ws_connections", ""), n("ledgerd_ws_closed_total", `"slow_consumer"`), n("ledgerd_ws_refused_total", "")),
		fmt.Sprintf("connections %-12.0f over a limit   %-10.0f errors  %.0f", n("ledgerd_http_connections", ""), n("ledgerd_http_rate_limited_total", ""), n("ledgerd_http_requests_total", `"5xx"`)),
		fmt.Sprintf("accounts    %-12.0f token accounts %.0f", n("ledgerd_accounts", ""), n("ledgerd_token_accounts", "")),
		fmt.Sprintf("memory      %-12s heap           %s", size(n("process_resident_memory_bytes", "")), size(n("go_memstats_heap_alloc_bytes", ""))),
		fmt.Sprintf("log         %-12s snapshot       %s", size(n("ledgerd_log_bytes", "")), snapshot),
	)
}

// foot says how often the node is asked.
func (v *view) foot() string {
	if v.budget.limit == 0 {
		return "q quits"
	}
	return fmt.Sprintf("q quits   budget %d of %d, asked every %s", v.budget.remaining, v.budget.limit, age(v.next))
}

const (
	bars       = "▁▂▃▄▅▆▇█"
	chartStart = 26
)

// chart draws a rate: what it is now, and bars of what it was, in parts of the highest that is shown.
func chart(name string, h history, width int) string {
	h = h[max(0, len(h)-max(0, width-chartStart)):]
	if len(h) == 0 || h[len(h)-1] < 0 {
		return fmt.Sprintf("%-15s %9s", name, "-")
	}
	highest := 0.0
	for _, value := range h {
		highest = max(highest, value)
	}
	steps := []rune(bars)
	var b strings.Builder
	for _, value := range h {
		switch {
		case value < 0:
			b.WriteByte(' ')
		case highest == 0:
			b.WriteRune(steps[0])
		default:
			b.WriteRune(steps[int(value/highest*float64(len(steps)-1)+0.5)])
		}
	}
	return fmt.Sprintf("%-15s %9.0f %s", name, h[len(h)-1], &b)
}

// age writes a duration for people, in its two largest units.
func age(d time.Duration) string {
	switch d = max(0, d.Round(time.Second)); {
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
	default:
		return fmt.Sprintf("%dd%02dh", int(d.Hours())/24, int(d.Hours())%24)
	}
}

// size writes a number of bytes for people.
func size(n float64) string {
	for _, unit := range []string{"B", "KiB", "MiB"} {
		if n < 1024 {
			return fmt.Sprintf("%.1f %s", n, unit)
		}
		n /= 1024
	}
	return fmt.Sprintf("%.1f GiB", n)
}
