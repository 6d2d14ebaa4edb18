package bench

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// The axes of a plot of percentiles.
const (
	percentileHeight = 340
	percentileLeft   = 60.0
	percentileRight  = plotWidth - 20.0
	percentileTop    = titleHeight + 6.0
	percentileBottom = percentileHeight - 40.0
	legendDistance   = 18
)

// drawPercentiles draws a line for each subject that has a series of a name. To the right each
// step is another nine of the share, and upwards time grows tenfold from line to line.
func (r *Result) drawPercentiles(name string) string {
	a := axes{least: math.Inf(1)}
	var lines []series
	for i, row := range r.Rows {
		for _, p := range row.Percentiles {
			if p.Name == name && len(p.Points) > 0 {
				lines = append(lines, series{row.Subject, colors[i%len(colors)], p.Points})
				a.include(p.Points)
			}
		}
	}
	a.round()
	d := newDrawing(percentileHeight+legendDistance*len(lines), name+", ms by percentile")
	a.draw(d)
	for i, s := range lines {
		var path strings.Builder
		for n, p := range s.points {
			fmt.Fprintf(&path, "%.1f,%.1f ", a.x(nines(s.points, n)), a.y(p.Milliseconds))
		}
		d.add(`<polyline points="%s" fill="none" stroke="%s" stroke-width="2"/>`, strings.TrimSpace(path.String()), s.color)
		y := float64(percentileHeight + legendDistance*i)
		d.line(percentileLeft, y, percentileLeft+24, y, s.color, 2)
		d.text(percentileLeft+32, y+4, "start", s.subject)
	}
	return d.end()
}

type series struct {
	subject, color string
	points         []Point
}

// nines returns how many nines the share of a point has: 1 for 0.9. That of the last point,
// which is all, would be infinite and is a step more than the one before.
func nines(points []Point, n int) float64 {
	if share := points[n].Share; share < 1 {
		return -math.Log10(1 - share)
	}
	if n == 0 {
		return 0
	}
	return nines(points, n-1) + 1.0/pointsPerDecade
}

// axes are what a plot of percentiles reaches over.
type axes struct {
	nines          float64
	least, highest float64 // milliseconds
}

func (a *axes) include(points []Point) {
	a.nines = max(a.nines, nines(points, len(points)-1))
	for _, p := range points {
		a.least, a.highest = min(a.least, a.clip(p.Milliseconds)), max(a.highest, a.clip(p.Milliseconds))
	}
}

// clip returns a time that has a logarithm: no less than what histograms tell apart.
func (a *axes) clip(ms float64) float64 { return max(ms, milliseconds(shortestLatency)) }

// round lets the axes end at whole powers of ten, one or more apart.
func (a *axes) round() {
	a.nines = max(a.nines, 1)
	a.least = math.Pow(10, math.Floor(math.Log10(a.least)))
	a.highest = max(math.Pow(10, math.Ceil(math.Log10(a.highest))), 10*a.least)
}

func (a *axes) x(nines float64) float64 {
	return percentileLeft + nines/a.nines*(percentileRight-percentileLeft)
}

func (a *axes) y(ms float64) float64 {
	share := math.Log10(a.clip(ms)/a.least) / math.Log10(a.highest/a.least)
	return percentileBottom - share*(percentileBottom-percentileTop)
}

// decade writes a power of ten without an exponent.
func decade(ms float64) string {
	if ms >= 1 {
		return thousands(ms)
	}
	return strconv.FormatFloat(ms, 'g', 3, 64)
}

// draw draws lines at the powers of ten, and says which.
func (a *axes) draw(d *drawing) {
	const grid = "#d4d4d8"
	for i := 0; float64(i) <= a.nines+1e-9; i++ {
		x := a.x(float64(i))
		d.line(x, percentileTop, x, percentileBottom, grid, 1)
		label := "0 %"
		if i > 0 {
			label = strconv.FormatFloat(100-math.Pow(10, float64(2-i)), 'f', max(0, i-2), 64) + " %"
		}
		d.text(x, percentileBottom+16, "middle", label)
	}
	decades := int(math.Round(math.Log10(a.highest / a.least)))
	for i := range decades + 1 {
		ms := a.least * math.Pow(10, float64(i))
		d.line(percentileLeft, a.y(ms), percentileRight, a.y(ms), grid, 1)
		d.text(percentileLeft-6, a.y(ms)+4, "end", decade(ms))
	}
}
