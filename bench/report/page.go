package report

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// Section is what the page tells of a scenario.
type Section struct {
	Scenario, Help string
	Plot           string // the file of its plot; "": none
}

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

// WritePage writes a page in Markdown: a line for each scenario with its goals, what is known of those that are not met, and a table
// for each scenario.
func (f *File) WritePage(w io.Writer, goals []Goal, sections []Section) error {
	var b strings.Builder
	fmt.Fprintf(&b, "# What was measured\n\nWritten by `ledgerbench report` from one run, never by hand; `make load` measures anew. A figure is the median of %s rounds\n", f.Config["rounds"])
	b.WriteString("with its interval (confidence 95 %; the range where rounds are fewer than six). Only ratios within a round mean anything on a shared\nmachine. A goal is *open* if its interval lies on both sides of the limit.\n\n")
	var about []string
	for _, key := range slices.Sorted(maps.Keys(f.Config)) {
		about = append(about, key+": "+f.Config[key])
	}
	fmt.Fprintf(&b, "%s\n", strings.Join(about, "; "))
	f.writeGoals(&b, goals, sections)
	for _, s := range sections {
		if found := f.scenarios[goName(s.Scenario)]; found != nil {
			found.write(&b, s)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// writeGoals writes what each scenario measures and which of its goals are met, and what is known of those that are not.
func (f *File) writeGoals(b *strings.Builder, goals []Goal, sections []Section) {
	count := make(map[Verdict]int)
	told := make(map[string]string)
	var whys []string
	missed := make(map[string][]string) // by why
	for i := range goals {
		j := f.Judge(&goals[i])
		count[j.Verdict]++
		told[j.Scenario] += fmt.Sprintf("<br>%s %s: ", j.What(), j.Limit())
		if j.Verdict != Absent {
			told[j.Scenario] += spread(j.Median, j.Lo, j.Hi)
		}
		if j.Verdict != Met {
			told[j.Scenario] += fmt.Sprintf(" **%s**", j.Verdict)
		}
		if j.Verdict != Met && j.Why != "" {
			if missed[j.Why] == nil {
				whys = append(whys, j.Why)
			}
			missed[j.Why] = append(missed[j.Why], j.Scenario+", "+j.What())
		}
	}
	fmt.Fprintf(b, "\n## Goals\n\n%d of %d are met; open: %d, missed: %d, not measured: %d.\n\n", count[Met], len(goals), count[Open], count[Missed], count[Absent])
	b.WriteString("| scenario | what it measures | goals, and what was measured |\n|---|---|---|\n")
	for _, s := range sections {
		var notes []string
		if found := f.scenarios[goName(s.Scenario)]; found != nil {
			notes = found.notes
		}
		help := strings.Join(append([]string{s.Help}, notes...), "<br>")
		fmt.Fprintf(b, "| [%s](#%s) | %s | %s |\n", s.Scenario, s.Scenario, cell(help), cell(strings.TrimPrefix(told[s.Scenario], "<br>")))
	}
	if len(whys) > 0 {
		b.WriteString("\nOf those that are not met:\n\n")
	}
	for _, why := range whys {
		fmt.Fprintf(b, "- %s: %s\n", strings.Join(missed[why], "; "), why)
	}
}

// cell returns a text as it is written in a table.
func cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }

// spread writes a median and its interval, unless that is the median alone.
func spread(median, lo, hi float64) string {
	if number(lo) == number(hi) {
		return number(median)
	}
	return fmt.Sprintf("%s (%s–%s)", number(median), number(lo), number(hi))
}

// write writes the table of a scenario: a line for each subject, a column for each unit.
func (s *scenario) write(b *strings.Builder, about Section) {
	fmt.Fprintf(b, "\n## %s\n", about.Scenario)
	if about.Plot != "" {
		fmt.Fprintf(b, "![%s](%s)\n\n", about.Scenario, about.Plot)
	}
	var units []string
	for _, o := range s.subjects {
		for _, unit := range o.units {
			if !slices.Contains(units, unit) {
				units = append(units, unit)
			}
		}
	}
	if len(units) > 0 {
		fmt.Fprintf(b, "| | %s |\n|---%s|\n", strings.Join(units, " | "), strings.Repeat("|--:", len(units)))
	}
	for _, o := range s.subjects {
		fmt.Fprintf(b, "| %s |", o.name)
		for _, unit := range units {
			figure := ""
			if values := o.values[unit]; len(values) > 0 {
				figure = spread(interval(values))
			}
			fmt.Fprintf(b, " %s |", figure)
		}
		b.WriteByte('\n')
	}
}
