package httpd

import (
	"net/netip"
	"time"
)

// windowKind names one of the two windows of the rate limit.
type windowKind uint8

const (
	minuteWindow windowKind = iota
	hourWindow
	windowKinds = 2
)

// String returns minute or hour.
func (k windowKind) String() string {
	if k == minuteWindow {
		return "minute"
	}
	return "hour"
}

var windowLength = [windowKinds]time.Duration{minuteWindow: time.Minute, hourWindow: time.Hour}

// unlimitedRemaining is what callers without a limit are told to have left.
const unlimitedRemaining = 1<<31 - 1

// allowance is what the rate limit says to one request, and what its response tells.
type allowance struct {
	allowed   bool
	window    windowKind    // the one that is told, on a refusal the one that refuses
	limit     int           // of that window, 0: unlimited
	remaining int           // requests left in it after this one
	reset     time.Duration // from now until it ends
}

// unlimited is the allowance of callers that nobody counts.
var unlimited = allowance{allowed: true, remaining: unlimitedRemaining, reset: time.Minute}

// limiter counts the requests of every client in two fixed windows, each starting with
// the first request the client makes when it has none. A request is granted by both or
// counted by neither. Time is the monotonic reading of the instants handed in.
//
// What holds, for any number of goroutines and clients:
//
//   - While a client keeps its place in the table it is never granted more than the limit
//     in a window. A request may be refused wrongly only while another one of the same
//     client is being refused by the hour.
//   - A client loses its place to a newcomer only when both its windows are over, or
//     when it is at or below half of both limits; the idle and the least used go first.
//   - A newcomer for whom no place can be made is counted together with the others of
//     its bucket, against one limit for all of them, until there is a place.
//   - Memory is bounded by the size of the table, whatever the number of addresses.
//   - Nobody waits: all state is in atomics, and a failed exchange means that somebody
//     else got on.
//
// Several nodes may count for each other: see sharing.
type limiter struct {
	limits [windowKinds]int // 0: off
	start  time.Time
	table  table
}

// newLimiter returns a limiter with requests per minute and per hour, 0 for no limit.
// Limits above maxCount are maxCount. start is any instant before the first request.
func newLimiter(perMinute, perHour, buckets int, start time.Time) *limiter {
	l := &limiter{limits: [windowKinds]int{min(perMinute, maxCount), min(perHour, maxCount)}, start: start}
	l.table.init(buckets)
	return l
}

// off reports whether there is nothing to count.
func (l *limiter) off() bool { return l.limits == [windowKinds]int{} }

// take asks for one request of a client.
func (l *limiter) take(key netip.Addr, now time.Time) allowance {
	if l.off() {
		return unlimited
	}
	at := l.at(now)
	for {
		if a, ok := l.takeFrom(l.table.find(key, at, &l.limits), at); ok {
			return a
		}
	}
}

// at returns an instant in the limiter's time.
func (l *limiter) at(now time.Time) instant { return instant(now.Sub(l.start).Milliseconds()) }

// takeFrom counts one request in both windows, or in none. It is not ok when the counter
// was given to a newcomer meanwhile.
func (l *limiter) takeFrom(c *counter, at instant) (a allowance, ok bool) {
	if hour := c[hourWindow].look(hourWindow, at); hour.spent(l.limits[hourWindow]) {
		if c.isGone() {
			return allowance{}, false
		}
		minute := c[minuteWindow].look(minuteWindow, at)
		if minute.spent(l.limits[minuteWindow]) && minute.ends > hour.ends {
			return l.refuse(minuteWindow, minute, at), true
		}
		return l.refuse(hourWindow, hour, at), true
	}
	minute, outcome := c[minuteWindow].take(minuteWindow, at, l.limits[minuteWindow])
	switch outcome {
	case gone:
		return allowance{}, false
	case refused:
		return l.refuse(minuteWindow, minute, at), true
	}
	hour, outcome := c[hourWindow].take(hourWindow, at, l.limits[hourWindow])
	if outcome == refused {
		c[minuteWindow].giveBack(minute)
		return l.refuse(hourWindow, hour, at), true
	}
	return l.grant([windowKinds]reading{minute, hour}, at), true
}

func (l *limiter) refuse(k windowKind, r reading, at instant) allowance {
	return allowance{window: k, limit: l.limits[k], reset: at.until(r.ends)}
}

// grant tells of the window with the fewest requests remaining, of equal ones the one
// that ends later.
func (l *limiter) grant(now [windowKinds]reading, at instant) allowance {
	told := allowance{allowed: true, remaining: unlimitedRemaining}
	for k, r := range now {
		limit := l.limits[k]
		if limit == 0 {
			continue
		}
		remaining, reset := limit-r.used, at.until(r.ends)
		if told.limit == 0 || remaining < told.remaining || remaining == told.remaining && reset > told.reset {
			told = allowance{allowed: true, window: windowKind(k), limit: limit, remaining: remaining, reset: reset}
		}
	}
	return told
}
