package promtext

import (
	"fmt"
	"io"
	"math"
	"time"
)

// bounds are the upper bounds of the buckets: fine where an answer from memory lies, coarse up to
// the longest wait a client can ask for.
var bounds = [...]time.Duration{
	time.Microsecond, 2500 * time.Nanosecond, 5 * time.Microsecond, 7500 * time.Nanosecond, 10 * time.Microsecond, 15 * time.Microsecond,
	25 * time.Microsecond, 50 * time.Microsecond, 100 * time.Microsecond, 250 * time.Microsecond,
	500 * time.Microsecond, time.Millisecond, 2500 * time.Microsecond, 5 * time.Millisecond,
	10 * time.Millisecond, 25 * time.Millisecond, 50 * time.Millisecond, 100 * time.Millisecond,
	250 * time.Millisecond, 500 * time.Millisecond, time.Second, 2500 * time.Millisecond, 5 * time.Second,
}

// Histogram counts durations in fixed buckets and writes them in the Prometheus text
// format, with cumulative "le" labels in seconds. The zero value is empty and ready; any
// number of goroutines may use it.
type Histogram struct {
	buckets [len(bounds) + 1]Counter // the last: longer than every bound
	sum     Counter                  // nanoseconds
}

// Observe counts one duration. A negative one counts as zero.
func (h *Histogram) Observe(d time.Duration) {
	d = max(d, 0)
	i := 0
	for i < len(bounds) && d > bounds[i] {
		i++
	}
	h.buckets[i].Add(1)
	h.sum.Add(uint64(d))
}

// Write writes the samples of the histogram as name, without HELP and TYPE lines. labels
// is empty or a list like `route="account"`. The buckets are read one after the other:
// what is observed meanwhile may be in some and not yet in others, but never makes a
// smaller bucket exceed a larger one.
func (h *Histogram) Write(w io.Writer, name, labels string) {
	before := ""
	if labels != "" {
		before = labels + ","
	}
	total := uint64(0)
	for i := range h.buckets {
		total += h.buckets[i].Load()
		le := math.Inf(1)
		if i < len(bounds) {
			le = bounds[i].Seconds()
		}
		Sample(w, name+"_bucket", fmt.Sprintf(`%sle="%v"`, before, le), total)
	}
	Sample(w, name+"_sum", labels, time.Duration(h.sum.Load()).Seconds())
	Sample(w, name+"_count", labels, total)
}
