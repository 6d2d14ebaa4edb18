package bench

import (
	"errors"
	"fmt"
	"html"
	"os"
	"path/filepath"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A plot is 720 units wide. It is drawn with attributes alone, without styles, so that it
// looks the same inside a page and as a file.
const (
	plotWidth   = 720
	labelWidth  = 190 // of the subjects on the left of bars, unless one is longer
	letterWidth = 6.4 // at most, on average
	valueWidth  = 220 // of the figures on the right of bars
	barHeight   = 18
	barDistance = 28
	titleHeight = 30
)

// colors are of subjects in their order; where there are more, they begin again.
var colors = [...]string{"#1f6feb", "#d97706", "#15803d", "#9333ea", "#be123c", "#0e7490", "#64748b", "#a16207"}

// plot is a drawing of a part of a result.
type plot struct {
	name string // of a file, without an ending
	svg  string
}

// plots draws what is worth it: latencies by percentile, and figures of something for each of
// something else, such as requests a second, which do not depend on how much was measured.
func (r *Result) plots() (all []plot) {
	seen := make(map[string]bool)
	for _, row := range r.Rows {
		for _, p := range row.Percentiles {
			if key := "percentiles " + p.Name; !seen[key] && len(p.Points) > 0 {
				seen[key] = true
				all = append(all, plot{fileName(r.Scenario, p.Name, "percentiles"), r.drawPercentiles(p.Name)})
			}
		}
	}
	for _, row := range r.Rows {
		for _, f := range row.Figures {
			if key := f.Name + " in " + f.Unit; !seen[key] && strings.Contains(f.Unit, "/") {
				seen[key] = true
				all = append(all, plot{fileName(r.Scenario, f.Name), r.drawBars(f.Name, f.Unit)})
			}
		}
	}
	return all
}

// WriteSVG writes every plot as a file of its own into a directory, which is made if need be.
func (r *Report) WriteSVG(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("cannot write plots: %w", err)
	}
	var failed []error
	for _, result := range r.Results {
		for _, p := range result.plots() {
			failed = append(failed, os.WriteFile(filepath.Join(dir, p.name+".svg"), []byte(p.svg), 0o644))
		}
	}
	return errors.Join(failed...)
}

// fileName joins words to the name of a file that needs no quotes anywhere.
func fileName(words ...string) string {
	parts := strings.FieldsFunc(strings.ToLower(strings.Join(words, " ")), func(r rune) bool {
		return r > unicode.MaxASCII || !unicode.IsLetter(r) && !unicode.IsDigit(r)
	})
	return strings.Join(parts, "-")
}

// drawBars draws the median of a figure for each subject, and a line from the least to the
// greatest.
func (r *Result) drawBars(name, unit string) string {
	type bar struct {
		subject, color         string
		median, least, highest float64
	}
	var bars []bar
	most, label := 0.0, float64(labelWidth)
	for i, row := range r.Rows {
		for _, f := range row.Figures {
			if f.Name == name && f.Unit == unit {
				b := bar{subject: row.Subject, color: colors[i%len(colors)], median: f.Median()}
				b.least, b.highest = f.Spread()
				bars = append(bars, b)
				most = max(most, b.highest)
				label = max(label, letterWidth*float64(utf8.RuneCountInString(row.Subject))+16)
			}
		}
	}
	d := newDrawing(titleHeight+barDistance*len(bars), name+", "+unit)
	at := func(v float64) float64 {
		if most <= 0 {
			return label
		}
		return label + max(v, 0)/most*(plotWidth-label-valueWidth)
	}
	for i, b := range bars {
		y := titleHeight + barDistance*i
		middle := float64(y) + barHeight/2
		d.text(label-8, middle+4, "end", b.subject)
		d.add(`<rect x="%.1f" y="%d" width="%.1f" height="%d" fill="%s" fill-opacity="0.75"/>`, label, y, at(b.median)-label, barHeight, b.color)
		if b.least != b.highest {
			d.line(at(b.least), middle, at(b.highest), middle, "#111", 1.5)
			d.line(at(b.least), middle-4, at(b.least), middle+4, "#111", 1.5)
			d.line(at(b.highest), middle-4, at(b.highest), middle+4, "#111", 1.5)
		}
		n := numbers(b.median, b.least, b.highest)
		value := n[0]
		if b.least != b.highest {
			value += " (" + n[1] + " – " + n[2] + ")"
		}
		d.text(at(b.highest)+8, middle+4, "start", value)
	}
	return d.end()
}

// drawing is an SVG that grows.
type drawing struct{ b strings.Builder }

// newDrawing begins one of a height, with a title.
func newDrawing(height int, title string) *drawing {
	d := new(drawing)
	d.add(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img" font-family="sans-serif" font-size="12" fill="#111">`,
		plotWidth, height, plotWidth, height)
	d.add(`<title>%s</title>`, html.EscapeString(title))
	d.add(`<rect width="%d" height="%d" fill="#fff"/>`, plotWidth, height)
	d.add(`<text x="8" y="18" font-weight="bold">%s</text>`, html.EscapeString(title))
	return d
}

func (d *drawing) add(format string, args ...any) { fmt.Fprintf(&d.b, format+"\n", args...) }

func (d *drawing) text(x, y float64, anchor, s string) {
	d.add(`<text x="%.1f" y="%.1f" text-anchor="%s">%s</text>`, x, y, anchor, html.EscapeString(s))
}

func (d *drawing) line(x1, y1, x2, y2 float64, color string, width float64) {
	d.add(`<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="%s" stroke-width="%v"/>`, x1, y1, x2, y2, color, width)
}

// end returns the whole.
func (d *drawing) end() string {
	d.b.WriteString("</svg>\n")
	return d.b.String()
}
