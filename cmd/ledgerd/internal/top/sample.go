package top

import (
	"regexp"
	"strconv"
	"strings"
	"time"
)

// sample is what the metrics of a node said at one moment: values by name, labels included.
type sample struct {
	at     time.Time
	values map[string]float64
}

// parseSample reads the text format of Prometheus. A line that it does not understand it passes over.
func parseSample(text string, at time.Time) *sample {
	s := &sample{at, make(map[string]float64)}
	for line := range strings.Lines(text) {
		end := strings.LastIndexByte(line, ' ')
		if end < 0 || line[0] == '#' {
			continue
		}
		if value, err := strconv.ParseFloat(strings.TrimSpace(line[end:]), 64); err == nil {
			s.values[line[:end]] = value
		}
	}
	return s
}

// sum returns the sum of the values of a family whose labels hold some text; known is false where there is none.
func (s *sample) sum(family, label string) (sum float64, known bool) {
	for name, value := range s.values {
		rest, ok := strings.CutPrefix(name, family)
		if ok && (rest == "" || rest[0] == '{') && strings.Contains(rest, label) {
			sum, known = sum+value, true
		}
	}
	return sum, known
}

// value is sum where 0 does for what is not known.
func (s *sample) value(family, label string) float64 {
	sum, _ := s.sum(family, label)
	return sum
}

var versionLabel = regexp.MustCompile(`^ledgerd_build_info\{.*version="([^"]*)"`)

// version returns the version of the node, "" where it is not said.
func (s *sample) version() string {
	for name := range s.values {
		if m := versionLabel.FindStringSubmatch(name); m != nil {
			return m[1]
		}
	}
	return ""
}
