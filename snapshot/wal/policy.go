package wal

import (
	"fmt"
	"strings"
	"time"
)

// Mode says when a commit is synced.
type Mode uint8

const (
	Always   Mode = iota // before Commit returns: nothing that was committed is ever lost
	Interval             // every so often: a crash of the machine may lose what came since
	Off                  // when a segment is full and at Close: only the death of the process is covered
)

// Policy is a mode and, with Interval, how long a commit may wait for its sync.
type Policy struct {
	Mode     Mode
	Interval time.Duration // positive with Interval
}

// String returns the text that ParsePolicy reads.
func (p Policy) String() string {
	switch p.Mode {
	case Always:
		return "always"
	case Interval:
		return "interval:" + p.Interval.String()
	}
	return "off"
}

// ParsePolicy reads always, interval:D with a positive duration D such as 1s, or off.
func ParsePolicy(s string) (Policy, error) {
	switch s {
	case "always":
		return Policy{Mode: Always}, nil
	case "off":
		return Policy{Mode: Off}, nil
	}
	if text, ok := strings.CutPrefix(s, "interval:"); ok {
		d, err := time.ParseDuration(text)
		if err != nil {
			return Policy{}, fmt.Errorf("cannot read the interval of %q: %w", s, err)
		}
		if d <= 0 {
			return Policy{}, fmt.Errorf("the interval of %q is not positive", s)
		}
		return Policy{Mode: Interval, Interval: d}, nil
	}
	return Policy{}, fmt.Errorf("%q is none of always, interval:DURATION and off", s)
}

// UnmarshalText reads what ParsePolicy reads.
func (p *Policy) UnmarshalText(text []byte) (err error) {
	*p, err = ParsePolicy(string(text))
	return err
}
