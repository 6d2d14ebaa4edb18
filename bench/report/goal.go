package report

import (
	"fmt"
	"slices"

	"golang.org/x/perf/benchmath"
)

// Goal is what a figure is held against.
type Goal struct {
	Scenario, Subject, Unit string
	Of                      string  // the subject that the figure is divided by, round by round; "": none
	AtLeast, AtMost         float64 // one of them is the limit; both 0: at most 0
	Why                     string  // what is known of a miss; ""
}

// What says what is compared.
func (g *Goal) What() string {
	what := fmt.Sprintf("%s: %s", g.Subject, g.Unit)
	if g.Of != "" {
		what += " / " + g.Of
	}
	return what
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
	Verdict        Verdict
	Median, Lo, Hi float64
}

// String says what was measured of which goal.
func (j *Judged) String() string {
	return fmt.Sprintf("%s, %s %s: %s", j.Scenario, j.What(), j.Limit(), spread(j.Median, j.Lo, j.Hi))
}

// Judge judges a goal.
func (f *File) Judge(g *Goal) Judged {
	values := f.values(g.Scenario, g.Subject, g.Unit)
	if g.Of != "" {
		values = ratios(values, f.values(g.Scenario, g.Of, g.Unit))
	}
	if len(values) == 0 {
		return Judged{Goal: g, Verdict: Absent}
	}
	j := Judged{Goal: g}
	j.Median, j.Lo, j.Hi = interval(values)
	keeps := func(v float64) bool { return g.AtLeast > 0 && v >= g.AtLeast || g.AtLeast == 0 && v <= g.AtMost }
	switch low, high := keeps(j.Lo), keeps(j.Hi); {
	case low && high:
		j.Verdict = Met
	case !low && !high:
		j.Verdict = Missed
	default:
		j.Verdict = Open
	}
	return j
}

// ratios divides round by round. A quotient by nothing is left out.
func ratios(values, by []float64) (quotients []float64) {
	for i := range min(len(values), len(by)) {
		if by[i] != 0 {
			quotients = append(quotients, values[i]/by[i])
		}
	}
	return quotients
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
