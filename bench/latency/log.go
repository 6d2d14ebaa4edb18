package latency

import (
	"errors"
	"io"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Log writes histograms by interval in HdrHistogram's log format (version 1.3, histograms in V2
// encoding). Values are nanoseconds; the column of the maximum is in milliseconds.
type Log struct {
	out *hdrhistogram.HistogramLogWriter
}

// NewLog begins a log at a time, to which the times of its intervals are relative.
func NewLog(w io.Writer, begin time.Time) (*Log, error) {
	out := hdrhistogram.NewHistogramLogWriter(w)
	out.SetBaseTime(begin.UnixMilli())
	return &Log{out}, errors.Join(out.OutputLogFormatVersion(), out.OutputStartTime(begin.UnixMilli()), out.OutputLegend())
}

// Add writes the latencies of an interval.
func (l *Log) Add(h *Histogram, from, to time.Time) error {
	h.counts.SetStartTimeMs(from.UnixMilli())
	h.counts.SetEndTimeMs(to.UnixMilli())
	return l.out.OutputIntervalHistogram(h.counts)
}
