package bench

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"
)

const markdownHead = "# What was measured\n\n" +
	"Written by `ledgerbench` from the files in `%[1]s/`, never by hand. `make load` measures everything anew, `bin/ledgerbench COMMAND\n" +
	"--scenario NAME --markdown bench/RESULTS.md` one scenario, which renews its part; `bin/ledgerbench results bench/RESULTS.md`\n" +
	"measures nothing and writes the page. A figure is the median of the rounds, with the least and the greatest. On a machine that\n" +
	"others use only ratios within one round mean anything.\n"

// writeMarkdown writes reports of one scenario each as a page, whose plots are in a folder beside it.
func writeMarkdown(w io.Writer, parts []*Report, folder string) error {
	var b strings.Builder
	fmt.Fprintf(&b, markdownHead, folder)
	writeGoalsMarkdown(&b, parts)
	writeRunsMarkdown(&b, parts)
	for _, p := range parts {
		p.Results[0].writeMarkdown(&b, folder)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// origin is all that a report says of how it came about.
type origin struct {
	machine                   Machine
	loaded, command, duration string
	begun                     time.Time
	rounds                    int
	scale                     float64
}

func (r *Report) origin() origin {
	return origin{r.Machine, r.Loaded, r.Command, r.Duration, r.Begun, r.Rounds, r.Scale}
}

// writeRunsMarkdown says on what, of what and how it was measured, once for all scenarios of a run.
func writeRunsMarkdown(b *strings.Builder, parts []*Report) {
	b.WriteString("\n## How it was measured\n")
	scenarios := make(map[origin][]string)
	versions := make(map[string]string)
	var runs []origin
	for _, p := range parts {
		r := p.origin()
		if scenarios[r] == nil {
			runs = append(runs, r)
		}
		scenarios[r] = append(scenarios[r], linked(p.Results[0].Scenario))
		maps.Copy(versions, p.Results[0].Versions)
	}
	for _, r := range runs {
		m := r.machine
		fmt.Fprintf(b, "\n| scenarios | %s |\n|---|---|\n", strings.Join(scenarios[r], ", "))
		for _, line := range [][2]string{
			{"machine", escaped(fmt.Sprintf("%s, cores: %d, memory: %.1f GiB", m.CPU, m.Cores, float64(m.MemoryBytes)/(1<<30)))},
			{"kernel", m.Kernel},
			{"Go", m.Go},
			{"loaded", escaped(r.loaded)},
			{"begun", r.begun.Format("2006-01-02 15:04 MST")},
			{"command", "`" + strings.ReplaceAll(r.command, "|", `\|`) + "`"},
			{"measured", fmt.Sprintf("rounds: %d, each %s, scale %v", r.rounds, r.duration, r.scale)},
		} {
			fmt.Fprintf(b, "| %s | %s |\n", line[0], line[1])
		}
	}
	if len(versions) == 0 {
		return
	}
	b.WriteString("\n| peer | version |\n|---|---|\n")
	for _, name := range slices.Sorted(maps.Keys(versions)) {
		fmt.Fprintf(b, "| %s | %s |\n", name, escaped(versions[name]))
	}
}

// writeGoalsMarkdown lists the goals of all scenarios.
func writeGoalsMarkdown(b *strings.Builder, parts []*Report) {
	met, all, scaled := 0, 0, false
	var lines strings.Builder
	for _, p := range parts {
		scaled = scaled || p.Scale != 1 && len(p.Results[0].Goals) > 0
		for _, g := range p.Results[0].Goals {
			verdict := "**missed**"
			all++
			if g.Met() {
				verdict = "met"
				met++
			}
			fmt.Fprintf(&lines, "| %s | %s | %s | %s | %s |\n", linked(p.Results[0].Scenario), escaped(g.What), g.bound(), numbers(g.Value)[0], verdict)
		}
	}
	fmt.Fprintf(b, "\n## Goals\n\n%d of %d are met.\n", met, all)
	if scaled {
		b.WriteString("They are for scale 1, and some of this was measured at another.\n")
	}
	if all > 0 {
		fmt.Fprintf(b, "\n| scenario | goal | limit | value | |\n|---|---|--:|--:|---|\n%s", lines.String())
	}
}

// writeMarkdown writes the part of one scenario: plots, figures and notes.
func (r *Result) writeMarkdown(b *strings.Builder, folder string) {
	fmt.Fprintf(b, "\n## %s\n", escaped(r.Scenario))
	if r.About != "" {
		fmt.Fprintf(b, "\n%s\n", escaped(r.About))
	}
	for _, p := range r.plots() {
		fmt.Fprintf(b, "\n![%s](%s/%s.svg)\n", p.name, folder, p.name)
	}
	if lines := r.pageLines(); len(lines) > 0 {
		b.WriteString("\n| subject | figure | unit | median | min | max |\n|---|---|---|--:|--:|--:|\n")
		for _, l := range lines {
			fmt.Fprintf(b, "| %s | %s | %s | %s | %s | %s |\n", escaped(l.Subject), escaped(l.Name), l.Unit, l.Median, l.Least, l.Highest)
		}
	}
	if len(r.Notes) > 0 {
		b.WriteByte('\n')
	}
	for _, note := range r.Notes {
		fmt.Fprintf(b, "- %s\n", escaped(note))
	}
}

// linked is a scenario's name that leads to its part of the page.
func linked(scenario string) string {
	return "[" + escaped(scenario) + "](#" + fileName(scenario) + ")"
}

// escaped is text that means nothing to Markdown, in one line.
func escaped(text string) string {
	return strings.NewReplacer("\n", " ", "|", `\|`, "<", "&lt;", "*", `\*`, "_", `\_`).Replace(text)
}
