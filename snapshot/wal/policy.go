package wal

import (
	"fmt"
	"strings"
	"time"
)

// Policy says when a commit is synced: Always, Off, or at most that duration after the commit. In the last case a crash of the
// machine may lose the commits since the last sync.
type Policy time.Duration

const (
	Always Policy = 0  // before Commit returns: nothing that was committed is ever lost
	Off    Policy = -1 // when a segment is full and at Close: commits survive the death of the process, but no crash of the machine
)

// String returns the text that UnmarshalText reads.
func (p Policy) String() string {
	switch p {
	case Always:
		return "always"
	case Off:
		return "off"
	}
	return "interval:" + time.Duration(p).String()
}

// UnmarshalText reads always, interval:D with a positive duration D such as 1s, or off.
func (p *Policy) UnmarshalText(text []byte) error {
	interval, ok := strings.CutPrefix(string(text), "interval:")
	d, err := time.ParseDuration(interval)
	switch {
	case ok && err != nil:
		return fmt.Errorf("cannot read the interval of %q: %w", text, err)
	case ok && d <= 0:
		return fmt.Errorf("the interval of %q is not positive", text)
	case ok:
		*p = Policy(d)
	case interval == "off":
		*p = Off
	case interval == "always":
		*p = Always
	default:
		return fmt.Errorf("%q is none of always, interval:DURATION and off", text)
	}
	return nil
}
