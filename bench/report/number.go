package report

import (
	"math"
	"strconv"
)

// number writes a value with three digits: 0.97, 28.3, 40.5k, 3.13G.
func number(v float64) string {
	const prefixes = "kMG"
	prefix := ""
	for i := 0; math.Abs(v) >= 999.5 && i < len(prefixes); i++ {
		v, prefix = v/1000, prefixes[i:i+1]
	}
	return strconv.FormatFloat(v, 'g', 3, 64) + prefix
}

// spread writes a median and its interval, unless that is the median alone.
func spread(median, lo, hi float64) string {
	if number(lo) == number(hi) {
		return number(median)
	}
	return number(median) + " (" + number(lo) + "–" + number(hi) + ")"
}
