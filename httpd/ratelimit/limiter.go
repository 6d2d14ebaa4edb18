// Package ratelimit counts the requests of clients and refuses those past a limit.
//
// A [Client] is an IPv4 address or an IPv6 /64; an [Identity] finds the client of a connection
// or, behind a trusted proxy, of a request. A [Limiter] counts each client in two fixed windows,
// without locks and in bounded memory.
package ratelimit

import (
	"net/netip"
	"sync/atomic"
	"time"
)

// Kind names one of the two windows of the rate limit.
type Kind uint8

const (
	Minute Kind = iota
	Hour
	Kinds = 2
)

// String returns minute or hour.
func (k Kind) String() string { return [Kinds]string{"minute", "hour"}[k] }

var windowLength = [Kinds]time.Duration{Minute: time.Minute, Hour: time.Hour}

// MaxLimit is the highest limit of a window.
const MaxLimit = maxCount

// unlimitedRemaining is what callers without a limit are told to have left.
const unlimitedRemaining = 1<<31 - 1

// Allowance is the decision about one request and what its response says of the limits.
type Allowance struct {
	Allowed   bool
	Window    Kind          // the one described here: with the fewest requests left, or the one that refuses
	Limit     int           // of that window, 0: unlimited
	Remaining int           // requests left in it after this one
	Reset     time.Duration // from now until it ends
}

// Unlimited is the allowance of callers that are not counted.
var Unlimited = Allowance{Allowed: true, Remaining: unlimitedRemaining, Reset: time.Minute}

// Limiter counts the requests of every client in two fixed windows, each starting with
// the first request the client makes when it has none. A request is granted by both or
// counted by neither. Time is the monotonic reading of the instants handed in.
//
// What holds, for any number of goroutines and clients:
//
//   - While a client keeps its entry in the table it is never granted more than the limit
//     in a window. A request may be refused wrongly only while another one of the same
//     client is being refused.
//   - A client is evicted in favour of a newcomer only when both its windows are over, or
//     when it is at or below half of both limits; the idle and the least used go first. Requests
//     that are being counted for it at that moment are forgotten with the earlier ones.
//   - A newcomer for whom no room can be made is counted together with the others of
//     its bucket, against one limit for all of them, until there is room.
//   - Memory is bounded by the size of the table, whatever the number of addresses.
//   - No caller waits: all state is in atomics, and a failed exchange means that another
//     caller's succeeded.
type Limiter struct {
	limits atomic.Pointer[limits]
	start  time.Time
	table  table
}

// New returns a limiter with requests per minute and per hour, 0 for no limit. Limits above
// MaxLimit are MaxLimit. start is any instant before the first request.
func New(perMinute, perHour int, start time.Time) *Limiter {
	return newLimiter(perMinute, perHour, defaultBuckets, start)
}

func newLimiter(perMinute, perHour, buckets int, start time.Time) *Limiter {
	l := &Limiter{start: start}
	l.SetLimits(perMinute, perHour)
	l.table.init(buckets)
	return l
}

// SetLimits changes the limits, which are as New has them, also for windows that have begun.
func (l *Limiter) SetLimits(perMinute, perHour int) {
	now := limitsOf(perMinute, perHour)
	l.limits.Store(&now)
}

// Take asks for n requests of a client at once: all are granted, or none is. With 0 it returns what is left to the client.
func (l *Limiter) Take(client netip.Addr, n int, now time.Time) Allowance {
	limit := l.limits.Load()
	if *limit == (limits{}) {
		return Unlimited
	}
	at := instant(now.Sub(l.start).Milliseconds())
	return limit.ask(l.table.find(client, at, limit), at, n)
}

// limits are the requests of each window, 0: any number.
type limits [Kinds]int

func limitsOf(perMinute, perHour int) limits {
	return limits{min(perMinute, maxCount), min(perHour, maxCount)}
}

// ask counts n requests in both windows, or in none; where n is 0, it returns what is left.
func (l *limits) ask(c *counter, at instant, n int) Allowance {
	if n == 0 {
		a := l.describe([Kinds]reading{c[Minute].look(Minute, at), c[Hour].look(Hour, at)}, at)
		a.Allowed = true
		return a
	}
	minute, ok := c[Minute].take(Minute, at, n, l[Minute])
	if !ok {
		return l.describe([Kinds]reading{minute, c[Hour].look(Hour, at)}, at)
	}
	hour, ok := c[Hour].take(Hour, at, n, l[Hour])
	if !ok {
		c[Minute].giveBack(minute, n)
		minute.used -= n
	}
	a := l.describe([Kinds]reading{minute, hour}, at)
	a.Allowed = ok
	return a
}

// describe returns what there is to say of the window with the fewest requests remaining, of
// equal ones the one that ends later. One that refuses has none remaining.
func (l *limits) describe(now [Kinds]reading, at instant) (a Allowance) {
	for k, r := range now {
		limit := l[k]
		if limit == 0 {
			continue
		}
		remaining, reset := max(limit-r.used, 0), time.Duration(r.ends-at)*time.Millisecond
		if a.Limit == 0 || remaining < a.Remaining || remaining == a.Remaining && reset > a.Reset {
			a = Allowance{Window: Kind(k), Limit: limit, Remaining: remaining, Reset: reset}
		}
	}
	return a
}

// Meter counts the requests of one caller, who has limits of its own and is never forgotten.
type Meter struct {
	start   time.Time
	counter counter
}

// NewMeter returns a meter. start is any instant before the first request.
func NewMeter(start time.Time) *Meter { return &Meter{start: start} }

// Take is that of a Limiter, with limits as New has them.
func (m *Meter) Take(perMinute, perHour, n int, now time.Time) Allowance {
	l := limitsOf(perMinute, perHour)
	if l == (limits{}) {
		return Unlimited
	}
	return l.ask(&m.counter, instant(now.Sub(m.start).Milliseconds()), n)
}
