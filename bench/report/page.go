package report

import (
	_ "embed"
	"fmt"
	"io"
	"strings"
	"text/template"
)

// Section is what the page tells of a scenario.
type Section struct{ Scenario, Help string }

// CheckClean returns an error unless all was measured of one revision without changes.
func (f *File) CheckClean() error {
	switch commit := f.Config["commit"]; {
	case commit == "":
		return fmt.Errorf("it does not say which revision was measured")
	case f.Config["changes"] != "no":
		return fmt.Errorf("it was measured of revision %s with changes: commit them and measure again", commit)
	}
	return nil
}

//go:embed page.md.tmpl
var pageText string

var page = template.Must(template.New("page").Option("missingkey=zero").Parse(pageText))

// WritePage writes a page in Markdown: the goals, each with the reason for its limit, and what each scenario measured.
func (f *File) WritePage(w io.Writer, goals []Goal, sections []Section) error {
	view := struct {
		*File
		Goals    []Judged
		Count    map[string]int // by verdict
		Sections []Section
	}{f, nil, make(map[string]int), sections}
	for i := range goals {
		j := f.Judge(&goals[i])
		view.Count[string(j.Verdict)]++
		view.Goals = append(view.Goals, j)
	}
	return page.Execute(w, view)
}

// Reason says in a table why the limit of a goal is that, and what it would take to meet one that is not met.
func (j *Judged) Reason() string {
	why := j.Why
	if j.Verdict != Met && j.Needs != "" {
		why += ". To meet it takes " + j.Needs
	}
	return strings.ReplaceAll(why, "|", `\|`)
}

// Figures are the medians of what was measured, with their intervals.
func (s *Subject) Figures() (figures []string) {
	for _, unit := range s.units {
		figures = append(figures, spread(interval(s.values[unit]))+" "+unit)
	}
	return figures
}
