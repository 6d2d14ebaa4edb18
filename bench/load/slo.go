package load

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"ledgerd/bench/latency"
)

// SLO is what must hold of counts, as a user writes it: p99=5ms,max=1s,failed=0.1%.
type SLO []objective

// objective is a limit of a percentile, or of the share of requests that fail.
type objective struct {
	text  string
	share float64       // of all that were due, those that must be answered within most; of failed: that may fail
	most  time.Duration // 0: this is of failed
}

// ParseSLO reads objectives with commas between them.
func ParseSLO(text string) (s SLO, err error) {
	for part := range strings.SplitSeq(text, ",") {
		o := objective{text: part, share: 1}
		name, value, _ := strings.Cut(part, "=")
		digits, isPercentile := strings.CutPrefix(name, "p")
		switch {
		case name == "failed":
			o.share, err = percent(strings.TrimSuffix(value, "%"))
		case isPercentile:
			o.share, err = percent(digits)
		case name != "max":
			err = strconv.ErrSyntax
		}
		if name != "failed" && err == nil {
			o.most, err = time.ParseDuration(value)
		}
		if err != nil || name != "failed" && (o.most <= 0 || o.share == 0) {
			return nil, fmt.Errorf("%q is none of p99=DURATION with any percentile, max=DURATION and failed=PERCENT", part)
		}
		s = append(s, o)
	}
	return s, nil
}

// percent returns a share of 0 to 1.
func percent(digits string) (float64, error) {
	v, err := strconv.ParseFloat(digits, 64)
	if err == nil && !(v >= 0 && v <= 100) {
		err = strconv.ErrRange
	}
	return v / 100, err
}

// Missed says of each objective that counts do not meet why. What failed, and what was due and never sent, was not answered in time.
func (s SLO) Missed(c *Counts) (why []string) {
	bad, due := float64(c.Failed()+c.Unsent), float64(c.Due())
	for _, o := range s {
		slowest, allowed := c.Latency.Quantile(o.share), (1-o.share)*due
		if o.most == 0 {
			allowed = o.share * due
		}
		switch {
		case due == 0:
			why = append(why, o.text+": nothing was asked")
		case bad > allowed*(1+1e-9): // 1 - 0.99 is not exact
			why = append(why, fmt.Sprintf("%s: %d requests failed and %d were not sent, of %d", o.text, c.Failed(), c.Unsent, c.Due()))
		case o.most > 0 && slowest > o.most:
			why = append(why, fmt.Sprintf("%s: it is %.4g ms", o.text, latency.Milliseconds(slowest)))
		}
	}
	return why
}

// MostRate is above what any load sends.
const MostRate = 1e7

// searchPrecision is how near to each other the highest rate that was met and the lowest that was not must come.
const searchPrecision = 1.05

// Search returns the highest rate at which try reports that all was met, 0 if there is none from one request a second on. It begins with
// a rate, doubles or halves it until the answer turns, and then halves what lies between in proportion.
func Search(rate float64, try func(rate float64) (met bool, err error)) (best float64, err error) {
	missed := math.Inf(1)
	for best*searchPrecision < missed && rate >= 1 && rate <= MostRate {
		met, err := try(rate)
		if err != nil {
			return best, err
		}
		if met {
			best = rate
		} else {
			missed = rate
		}
		switch {
		case math.IsInf(missed, 1):
			rate = 2 * best
		case best == 0:
			rate = missed / 2
		default:
			rate = math.Sqrt(best * missed)
		}
	}
	return best, nil
}
