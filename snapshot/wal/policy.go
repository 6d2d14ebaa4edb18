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

// String returns the text that UnmarshalText reads.
func (p Policy) String() string {
	switch p.Mode {
	case Always:
		return "always"
	case Interval:
		return "interval:" + p.Interval.String()
	}
	return "off"
}

// UnmarshalText reads always, interval:D with a positive duration D such as 1s, or off.
func (p *Policy) UnmarshalText(text []byte) (err error) {
	*p = Policy{}
	interval, ok := strings.CutPrefix(string(text), "interval:")
	switch {
	case ok:
		p.Mode = Interval
		if p.Interval, err = time.ParseDuration(interval); err != nil {
			return fmt.Errorf("cannot read the interval of %q: %w", text, err)
		}
		if p.Interval <= 0 {
			return fmt.Errorf("the interval of %q is not positive", text)
		}
	case string(text) == "off":
		p.Mode = Off
	case string(text) != "always":
		return fmt.Errorf("%q is none of always, interval:DURATION and off", text)
	}
	return nil
}
