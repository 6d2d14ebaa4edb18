package report

import (
	"cmp"
	"fmt"
	"html"
	"io"
	"math"
	"slices"
	"strings"
)

// The sizes of plots, in pixels.
const (
	plotWidth   = 720
	plotLeft    = 150.0
	plotRight   = plotWidth - 170.0
	lineHeight  = 26
	plotHeight  = 320
	plotTop     = 40.0
	plotBottom  = plotHeight - 30.0
	labelOffset = 4 // from the middle of a letter to its foot
)

// colors are told apart on light and on dark ground.
var colors = []string{"#2563eb", "#ea580c", "#16a34a", "#9333ea", "#dc2626", "#0891b2", "#ca8a04", "#db2777", "#64748b", "#84cc16"}

// svg is a drawing that grows.
type svg struct{ strings.Builder }

func (d *svg) add(format string, args ...any) { fmt.Fprintf(d, format+"\n", args...) }

func newPlot(height int, title string) *svg {
	d := new(svg)
	d.add(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12" fill="#64748b">`, plotWidth, height)
	d.text(10, 20, "start", title)
	return d
}

// end writes the drawing.
func (d *svg) end(w io.Writer) error {
	d.add("</svg>")
	_, err := io.WriteString(w, d.String())
	return err
}

func (d *svg) line(x1, y1, x2, y2 float64, color string) {
	d.add(`<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="%s"/>`, x1, y1, x2, y2, color)
}

func (d *svg) text(x, y float64, anchor, text string) {
	d.add(`<text x="%.1f" y="%.1f" text-anchor="%s">%s</text>`, x, y, anchor, html.EscapeString(text))
}

// PlotBars draws a bar for the median of a figure of each subject of a scenario, with its interval.
func (f *File) PlotBars(w io.Writer, scenarioName, unit string) error {
	s := f.scenario(goName(scenarioName))
	most := 0.0
	for _, o := range s.subjects {
		most = max(most, slices.Max(append(o.values[unit], 0)))
	}
	d := newPlot(int(plotTop)+lineHeight*len(s.subjects), scenarioName+", "+unit)
	at := func(v float64) float64 { return plotLeft + v/cmp.Or(most, 1)*(plotRight-plotLeft) }
	for i, o := range s.subjects {
		if len(o.values[unit]) == 0 {
			continue
		}
		median, lo, hi := interval(o.values[unit])
		middle := plotTop + lineHeight*(float64(i)+0.5)
		d.text(plotLeft-8, middle+labelOffset, "end", o.name)
		d.add(`<rect x="%.1f" y="%.1f" width="%.1f" height="18" fill="%s"/>`, plotLeft, middle-9, at(median)-plotLeft, colors[i%len(colors)])
		d.line(at(lo), middle, at(hi), middle, "#000")
		d.text(at(hi)+8, middle+labelOffset, "start", spread(median, lo, hi))
	}
	return d.end(w)
}

// percentiles are the units that a plot of percentiles shows, from left to right.
var percentiles = []string{"p50-ms", "p90-ms", "p99-ms", "p99.9-ms", "p99.99-ms"}

// PlotPercentiles draws a line for each subject of a scenario through the medians of its percentiles. Upwards time grows tenfold
// from line to line.
func (f *File) PlotPercentiles(w io.Writer, scenarioName string) error {
	s := f.scenario(goName(scenarioName))
	least, most := math.Inf(1), math.Inf(-1)
	lines := make([][]float64, len(s.subjects))
	for i, o := range s.subjects {
		for _, unit := range percentiles {
			if values := o.values[unit]; len(values) > 0 {
				median, _, _ := interval(values)
				lines[i] = append(lines[i], math.Log10(max(median, 0.001)))
			}
		}
		least, most = min(least, slices.Min(append(lines[i], least))), max(most, slices.Max(append(lines[i], most)))
	}
	d := newPlot(plotHeight, scenarioName+", ms by percentile")
	least, most = math.Floor(least), math.Ceil(most)
	x := func(n int) float64 { return plotLeft + float64(n)*(plotRight-plotLeft)/float64(len(percentiles)-1) }
	y := func(log float64) float64 { return plotBottom - (log-least)/(most-least)*(plotBottom-plotTop) }
	for n, unit := range percentiles {
		d.text(x(n), plotBottom+18, "middle", strings.TrimSuffix(unit, "-ms"))
	}
	for log := least; log <= most; log++ {
		d.line(plotLeft, y(log), plotRight, y(log), "#cbd5e1")
		d.text(plotLeft-8, y(log)+labelOffset, "end", number(math.Pow(10, log)))
	}
	for i, line := range lines {
		if len(line) == 0 {
			continue
		}
		var points strings.Builder
		for n, log := range line {
			fmt.Fprintf(&points, "%.1f,%.1f ", x(n), y(log))
		}
		color := colors[i%len(colors)]
		d.add(`<polyline points="%s" fill="none" stroke="%s" stroke-width="2"/>`, strings.TrimSpace(points.String()), color)
		legend := plotTop + 18*float64(i)
		d.add(`<rect x="%.1f" y="%.1f" width="12" height="12" fill="%s"/>`, plotRight+12, legend, color)
		d.text(plotRight+30, legend+10, "start", s.subjects[i].name)
	}
	return d.end(w)
}
