package report

import (
	"fmt"
	"io"
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

// WritePage writes a page in Markdown: the goals, then what was measured in each scenario.
func (f *File) WritePage(w io.Writer, goals []Goal, sections []Section) error {
	var b strings.Builder
	fmt.Fprintf(&b, "# What was measured\n\nWritten by `ledgerbench report` from one run, never by hand; `make load` measures anew. A figure is the median of %s rounds\n", f.Config["rounds"])
	b.WriteString("with its interval (confidence 95 %; the range where rounds are fewer than six). Only ratios within a round mean anything on a shared\nmachine. A goal is *open* if its interval lies on both sides of the limit.\n\n")
	for _, key := range []string{"commit", "begun", "command", "go", "cpu", "cores", "memory", "kernel"} {
		if value := f.Config[key]; value != "" {
			fmt.Fprintf(&b, "- %s: %s\n", key, value)
		}
	}
	f.writeGoals(&b, goals)
	for _, s := range sections {
		if found := f.scenarios[goName(s.Scenario)]; found != nil {
			found.write(&b, s)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// writeGoals writes the table of goals, and what is known of those that are not met.
func (f *File) writeGoals(b *strings.Builder, goals []Goal) {
	count := make(map[Verdict]int)
	var rows, misses strings.Builder
	for i := range goals {
		j := f.Judge(&goals[i])
		count[j.Verdict]++
		fmt.Fprintf(&rows, "| %s | %s | %s | %s | %s |\n", j.Scenario, j.What(), j.Limit(), j.cell(), j.mark())
		if j.Verdict != Met && j.Why != "" {
			fmt.Fprintf(&misses, "- %s, %s: %s\n", j.Scenario, j.What(), j.Why)
		}
	}
	fmt.Fprintf(b, "\n## Goals\n\n%d of %d are met; open: %d, missed: %d, not measured: %d.\n\n", count[Met], len(goals), count[Open], count[Missed], count[Absent])
	b.WriteString("| scenario | goal | limit | measured | |\n|---|---|--:|--:|---|\n" + rows.String())
	if misses.Len() > 0 {
		b.WriteString("\nOf those that are not met:\n\n" + misses.String())
	}
}

func (j *Judged) cell() string {
	if j.Verdict == Absent {
		return ""
	}
	return spread(j.Median, j.Lo, j.Hi)
}

func (j *Judged) mark() string {
	if j.Verdict == Met {
		return string(Met)
	}
	return "**" + string(j.Verdict) + "**"
}

// spread writes a median and its interval, unless that is the median alone.
func spread(median, lo, hi float64) string {
	if number(lo) == number(hi) {
		return number(median)
	}
	return fmt.Sprintf("%s (%s–%s)", number(median), number(lo), number(hi))
}

// write writes the table of a scenario: a line for each subject, a column for each unit.
func (s *scenario) write(b *strings.Builder, about Section) {
	fmt.Fprintf(b, "\n## %s\n\n%s\n", about.Scenario, about.Help)
	if about.Plot != "" {
		fmt.Fprintf(b, "\n![%s](%s)\n", about.Scenario, about.Plot)
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
		fmt.Fprintf(b, "\n| | %s |\n|---%s|\n", strings.Join(units, " | "), strings.Repeat("|--:", len(units)))
	}
	for _, o := range s.subjects {
		fmt.Fprintf(b, "| %s |", o.name)
		for _, unit := range units {
			cell := ""
			if values := o.values[unit]; len(values) > 0 {
				cell = spread(interval(values))
			}
			fmt.Fprintf(b, " %s |", cell)
		}
		b.WriteByte('\n')
	}
	if len(s.notes) > 0 {
		fmt.Fprintf(b, "\n%s\n", strings.Join(s.notes, "; "))
	}
}
