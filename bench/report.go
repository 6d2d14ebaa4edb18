package bench

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strings"
	"time"
	"unicode/utf8"
)

// Report is a run of some scenarios on one machine.
type Report struct {
	Machine  Machine   `json:"machine"`
	Begun    time.Time `json:"begun"`
	Command  string    `json:"command,omitempty"` // as it was typed
	Loaded   string    `json:"loaded,omitempty"`  // what was: the revision of ledgerd, or the server that runs
	Rounds   int       `json:"rounds"`
	Duration string    `json:"duration"` // of one measurement
	Scale    float64   `json:"scale"`
	Results  []*Result `json:"results"`
}

// NewReport returns a report without results of a run in env.
func NewReport(env *Env, m Machine, begun time.Time) *Report {
	return &Report{Machine: m, Begun: begun.UTC().Truncate(time.Second), Rounds: env.Rounds, Duration: env.Duration.String(), Scale: env.Scale, Results: []*Result{}}
}

// Missed returns the goals that were not met.
func (r *Report) Missed() (missed []Goal) {
	for _, result := range r.Results {
		for _, g := range result.Goals {
			if !g.Met() {
				missed = append(missed, g)
			}
		}
	}
	return missed
}

// WriteJSON writes the report for programs, with every value of every round.
func (r *Report) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(r)
}

// MarshalJSON adds whether the goal was met.
func (g Goal) MarshalJSON() ([]byte, error) {
	type fields Goal
	return json.Marshal(struct {
		fields
		Met bool `json:"met"`
	}{fields(g), g.Met()})
}

// WriteText writes the report for people.
func (r *Report) WriteText(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "machine  %s\n", r.Machine)
	if r.Loaded != "" {
		fmt.Fprintf(&b, "loaded   %s\n", r.Loaded)
	}
	fmt.Fprintf(&b, "run      %s, rounds: %d, each %s, scale %v\n", r.Begun.Format("2006-01-02 15:04 MST"), r.Rounds, r.Duration, r.Scale)
	for _, result := range r.Results {
		fmt.Fprintf(&b, "\n%s\n\n", result.Scenario)
		result.writeRows(&b)
		result.writeGoals(&b)
		for _, note := range result.Notes {
			fmt.Fprintf(&b, "note: %s\n", note)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (r *Result) writeRows(b *strings.Builder) {
	t := table{{"subject", "figure", "unit", "median", "min", "max"}}
	for _, row := range r.Rows {
		subject := row.Subject
		for _, f := range row.Figures {
			least, greatest := f.Spread()
			t = append(t, append([]string{subject, f.Name, f.Unit}, numbers(f.Median(), least, greatest)...))
			subject = "" // said once
		}
	}
	if len(t) == 1 {
		return
	}
	t.write(b, 3)
	b.WriteByte('\n')
}

func (r *Result) writeGoals(b *strings.Builder) {
	if len(r.Goals) == 0 {
		return
	}
	t := table{{"goal", "", "limit", "value"}}
	for _, g := range r.Goals {
		verdict := "met"
		if !g.Met() {
			verdict = "MISSED"
		}
		t = append(t, []string{verdict, g.What, g.bound(), numbers(g.Value)[0]})
	}
	t.write(b, 2)
	b.WriteByte('\n')
}

// table is lines of cells, all of one length.
type table [][]string

// write sets columns side by side; those from numbers on are aligned to the right.
func (t table) write(b *strings.Builder, numbers int) {
	widths := make([]int, len(t[0]))
	for _, line := range t {
		for i, cell := range line {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	for _, line := range t {
		var out strings.Builder
		for i, cell := range line {
			if i > 0 {
				out.WriteString("  ")
			}
			room := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if i >= numbers {
				out.WriteString(room + cell)
			} else {
				out.WriteString(cell + room)
			}
		}
		b.WriteString(strings.TrimRight(out.String(), " ") + "\n")
	}
}

// numbers writes values that belong together with three digits or more, and commas between
// thousands. Counts stay whole.
func numbers(values ...float64) []string {
	whole := true
	for _, v := range values {
		whole = whole && v == math.Trunc(v)
	}
	out := make([]string, len(values))
	for i, v := range values {
		size := math.Abs(v)
		switch {
		case whole || size >= 100:
			out[i] = thousands(v)
		case size < 0.1:
			out[i] = fmt.Sprintf("%.2g", v)
		case size < 10:
			out[i] = fmt.Sprintf("%.2f", v)
		default:
			out[i] = fmt.Sprintf("%.1f", v)
		}
	}
	return out
}

func thousands(v float64) string {
	digits := fmt.Sprintf("%.0f", v)
	for at := len(digits) - 3; at > 0 && digits[at-1] != '-'; at -= 3 {
		digits = digits[:at] + "," + digits[at:]
	}
	return digits
}
