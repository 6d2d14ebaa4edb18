package report

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
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

// WritePage writes a page in Markdown: the goals, each with the reason for its limit, and what each scenario measured.
func (f *File) WritePage(w io.Writer, goals []Goal, sections []Section) error {
	var b strings.Builder
	b.WriteString("# What was measured\n\nWritten by `ledgerbench report` from one run; `make load` measures anew. ")
	fmt.Fprintf(&b, "A figure is the median of %s rounds\n", f.Config["rounds"])
	b.WriteString("with its interval (confidence 95 %; the range where rounds are fewer than six). Only ratios within a round mean anything on a shared\n" +
		"machine. A goal is *open* if its interval lies on both sides of the limit.\n\n")
	var about []string
	for _, key := range slices.Sorted(maps.Keys(f.Config)) {
		about = append(about, key+": "+f.Config[key])
	}
	fmt.Fprintf(&b, "%s\n", strings.Join(about, "; "))
	f.writeGoals(&b, goals)
	for _, s := range sections {
		fmt.Fprintf(&b, "\n## %s\n%s\n", s.Scenario, strings.Join(append([]string{s.Help}, f.notes[s.Scenario]...), " — "))
		f.writeFigures(&b, s.Scenario)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// writeGoals writes which goals are met, and what those would need that are not.
func (f *File) writeGoals(b *strings.Builder, goals []Goal) {
	count := make(map[Verdict]int)
	var table strings.Builder
	for i := range goals {
		j := f.Judge(&goals[i])
		count[j.Verdict]++
		why := j.Why
		if j.Verdict != Met && j.Needs != "" {
			why += ". To meet it takes " + j.Needs
		}
		fmt.Fprintf(&table, "| %s | %s | %s | %s | %s |\n", j.What(), j.Limit(), j.Measured, j.Verdict, strings.ReplaceAll(why, "|", `\|`))
	}
	fmt.Fprintf(b, "\n## Goals\n\n%d of %d are met; open: %d, missed: %d, not measured: %d.\n\n", count[Met], len(goals), count[Open], count[Missed], count[Absent])
	fmt.Fprintf(b, "| what is compared | limit | measured | | why this limit |\n|---|---|---|---|---|\n%s", &table)
}

// writeFigures writes what a scenario measured: a line for each subject.
func (f *File) writeFigures(b *strings.Builder, scenario string) {
	figures, subjects := make(map[string][]string), []string(nil)
	for _, s := range f.series {
		if s.scenario != scenario {
			continue
		}
		if figures[s.subject] == nil {
			subjects = append(subjects, s.subject)
		}
		figures[s.subject] = append(figures[s.subject], spread(interval(f.values[s]))+" "+s.unit)
	}
	for _, subject := range subjects {
		fmt.Fprintf(b, "- **%s**: %s\n", subject, strings.Join(figures[subject], ", "))
	}
}
