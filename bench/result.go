package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"time"
)

// Scenario is one kind of load.
type Scenario struct {
	Name string // as it is typed
	Help string // one line
	// Own says why the scenario needs a server that it starts itself. "": it also runs against
	// the one of Env.Live.
	Own string
	Run func(ctx context.Context, env *Env) (*Result, error)
}

// Do runs the scenario. One that needs a server of its own is left out, and says why, where
// another is to be loaded; so are all behind one that met a limit there.
func (s *Scenario) Do(ctx context.Context, env *Env) (*Result, error) {
	if env.Live != nil && s.Own != "" {
		return &Result{Scenario: s.Name, About: s.Help, Notes: []string{"left out, because it needs a server of its own: " + s.Own}}, nil
	}
	if env.Live != nil && env.Live.limited {
		return &Result{Scenario: s.Name, About: s.Help, Notes: []string{"left out: the server wants to be asked no more; " + exemptHint}}, nil
	}
	r, err := s.Run(ctx, env)
	if limited := (*limitedError)(nil); env.Live != nil && errors.As(err, &limited) {
		env.Live.limited = true
	}
	if r != nil {
		r.About = s.Help
	}
	return r, err
}

// Env is what a scenario runs in.
type Env struct {
	Ledgerd  string        // the program to start
	Live     *Live         // the server to load instead, which runs already; nil: none
	Dir      string        // for data directories; the scenario removes what it puts there
	Rounds   int           // how often everything is measured
	Duration time.Duration // of one measurement
	Scale    float64       // 1: the sizes that the goals name; less for a trial
	Peers    bool          // also measure what a user would pick instead
	Progress io.Writer     // one line a step, for people
}

// Scaled returns a size of the full load as this run has it, at least 1.
func (e *Env) Scaled(full int) int { return max(1, int(float64(full)*e.Scale)) }

// Say writes a line of progress.
func (e *Env) Say(format string, args ...any) {
	fmt.Fprintf(e.Progress, format+"\n", args...)
}

// Result is what a scenario found.
type Result struct {
	Scenario string            `json:"scenario"`
	About    string            `json:"about,omitempty"` // what is asked, in a line
	Rows     []Row             `json:"rows"`
	Goals    []Goal            `json:"goals,omitempty"`
	Notes    []string          `json:"notes,omitempty"`    // what a reader must know: peers that are absent, limits met
	Versions map[string]string `json:"versions,omitempty"` // of the peers
}

// version notes what a peer is, if it says so.
func (r *Result) version(peer, version string) {
	if version == "" {
		return
	}
	if r.Versions == nil {
		r.Versions = make(map[string]string)
	}
	r.Versions[peer] = version
}

// Row is what was measured of one subject: ledgerd in some state, or a peer.
type Row struct {
	Subject     string        `json:"subject"`
	Figures     []Figure      `json:"figures"`
	Percentiles []Percentiles `json:"percentiles,omitempty"` // where latencies were counted, to be drawn
}

// Figure is one quantity, a value for each round.
type Figure struct {
	Name   string    `json:"name"`
	Unit   string    `json:"unit"`
	Values []float64 `json:"values"`
}

// Median returns the middle of the values, 0 without any.
func (f *Figure) Median() float64 {
	if len(f.Values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(f.Values))
	middle := len(sorted) / 2
	if len(sorted)%2 == 0 {
		return (sorted[middle-1] + sorted[middle]) / 2
	}
	return sorted[middle]
}

// Spread returns the least and the greatest value, 0 without any.
func (f *Figure) Spread() (least, greatest float64) {
	if len(f.Values) == 0 {
		return 0, 0
	}
	return slices.Min(f.Values), slices.Max(f.Values)
}

// Add notes the value of a round, under a name that is new or known. A quotient by nothing is no
// value, and is not noted.
func (r *Row) Add(name, unit string, value float64) {
	if math.IsNaN(value) || math.IsInf(value, 0) {
		return
	}
	for i := range r.Figures {
		if r.Figures[i].Name == name {
			r.Figures[i].Values = append(r.Figures[i].Values, value)
			return
		}
	}
	r.Figures = append(r.Figures, Figure{name, unit, []float64{value}})
}

// Row returns the row of a subject, which is added if there is none. It is valid until the
// next one is added.
func (r *Result) Row(subject string) *Row {
	for i := range r.Rows {
		if r.Rows[i].Subject == subject {
			return &r.Rows[i]
		}
	}
	r.Rows = append(r.Rows, Row{Subject: subject})
	return &r.Rows[len(r.Rows)-1]
}

// Goal is what the figures are held against.
type Goal struct {
	What  string  `json:"what"`
	Value float64 `json:"value"`
	Limit float64 `json:"limit"`
	Least bool    `json:"least"` // the limit is the least that will do, else the most
}

// Met reports whether the value is on the right side of the limit.
func (g *Goal) Met() bool {
	if g.Least {
		return g.Value >= g.Limit
	}
	return g.Value <= g.Limit
}

// bound says what the limit is.
func (g *Goal) bound() string {
	if g.Least {
		return "at least " + numbers(g.Limit)[0]
	}
	return "at most " + numbers(g.Limit)[0]
}
