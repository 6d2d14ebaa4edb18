package report

import (
	"bytes"
	"fmt"
	"slices"

	"go.yaml.in/yaml/v3"
	"golang.org/x/perf/benchmath"
)

// Goal is what the ratio of two subjects' figures is held against.
type Goal struct {
	Scenario, Subject, Unit string
	Of                      string  // the subject that the figure is divided by, round by round
	AtLeast                 float64 `yaml:"at_least"`
	AtMost                  float64 `yaml:"at_most"` // one of them is the limit
	Why                     string  // it is that
	Needs                   string  // what it would take to meet the goal where two processors do not; ""
}

// ReadGoals reads goals as a list in YAML.
func ReadGoals(text []byte) (goals []Goal, err error) {
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true)
	err = decoder.Decode(&goals)
	return goals, err
}

// What says what is compared.
func (g *Goal) What() string {
	return fmt.Sprintf("%s, %s: %s / %s", g.Scenario, g.Subject, g.Unit, g.Of)
}

// Limit says which.
func (g *Goal) Limit() string {
	if g.AtLeast > 0 {
		return "≥ " + number(g.AtLeast)
	}
	return "≤ " + number(g.AtMost)
}

// Verdict is what came of a goal.
type Verdict string

// The verdicts. A goal is open if its interval lies on both sides of the limit.
const (
	Met    Verdict = "met"
	Missed Verdict = "missed"
	Open   Verdict = "open"
	Absent Verdict = "not measured"
)

// Judged is a goal with what was measured.
type Judged struct {
	*Goal
	Verdict  Verdict
	Measured string // the median and its interval
}

// String says what was measured of which goal.
func (j *Judged) String() string {
	return fmt.Sprintf("%s %s: %s", j.What(), j.Limit(), j.Measured)
}

// Judge judges a goal.
func (f *File) Judge(g *Goal) Judged {
	subject, _ := f.subject(g.Scenario, g.Subject)
	of, _ := f.subject(g.Scenario, g.Of)
	values, by := subject.values[g.Unit], of.values[g.Unit]
	var ratios []float64
	for i := range min(len(values), len(by)) {
		if by[i] != 0 {
			ratios = append(ratios, values[i]/by[i])
		}
	}
	if len(ratios) == 0 {
		return Judged{Goal: g, Verdict: Absent}
	}
	median, lo, hi := interval(ratios)
	j := Judged{g, Open, spread(median, lo, hi)}
	keeps := func(v float64) bool { return g.AtLeast > 0 && v >= g.AtLeast || g.AtLeast == 0 && v <= g.AtMost }
	switch low, high := keeps(lo), keeps(hi); {
	case low && high:
		j.Verdict = Met
	case !low && !high:
		j.Verdict = Missed
	}
	return j
}

// leastRounds is how many values the median's interval needs for a confidence of 95 %: the chance that all of them lie on one
// side of the median is 2^(1-n).
const leastRounds = 6

// interval returns the median and where it lies with a confidence of 95 %, or the range of fewer values than tell that.
func interval(values []float64) (median, lo, hi float64) {
	values = slices.Clone(values)
	summary := benchmath.AssumeNothing.Summary(benchmath.NewSample(values, &benchmath.DefaultThresholds), 0.95)
	if len(values) < leastRounds {
		return summary.Center, slices.Min(values), slices.Max(values)
	}
	return summary.Center, summary.Lo, summary.Hi
}
