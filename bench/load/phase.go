package load

import (
	"context"
	"math"
	"math/rand/v2"
	"runtime"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"ledgerd/engine/ledger/wait"
)

// Pace says when the requests of a phase are sent.
type Pace struct {
	Length   time.Duration
	Rate     float64       // requests a second, all connections together; 0: closed loop
	Poisson  bool          // they are due at random, as those of many clients who know nothing of each other
	Ramp     time.Duration // for so long the rate, or the number of connections in a closed loop, rises from nothing
	Requests int           // the phase ends after so many; 0: with its length
}

// phase is one time of asking. Times in it count from its beginning.
type phase struct {
	*Load
	Pace
	ctx     context.Context // nothing is sent any more when it is done
	stop    context.CancelFunc
	from    time.Time
	until   time.Time       // when no response is waited for any more
	last    context.Context // is done then
	issued  atomic.Int64
	tickets chan time.Duration // in an open loop: when requests are due, handed to connections that are free
	unsent  int                // those that were due and are not sent
}

// take returns when the next request of a connection is due, once it is. There is none when the phase sends nothing more.
func (p *phase) take() (due time.Duration, more bool) {
	if p.Rate > 0 {
		due, more = <-p.tickets
		return due, more
	}
	if p.Requests > 0 && p.issued.Add(1) > int64(p.Requests) {
		p.stop() // connections that the ramp holds back need not begin
	}
	return time.Since(p.from), p.ctx.Err() == nil
}

// schedule is when the requests of an open loop are due.
type schedule struct {
	Pace
	random   *rand.Rand
	n        int     // of the next request
	position float64 // of it, in requests at the full rate
}

// due returns when the next request is due. While the rate rises evenly, the number of requests grows with the square of the time.
func (s *schedule) due() time.Duration {
	ramp := s.Ramp.Seconds()
	seconds := s.position/s.Rate + ramp/2
	if seconds < ramp {
		seconds = math.Sqrt(2 * s.position * ramp / s.Rate)
	}
	return time.Duration(seconds * float64(time.Second))
}

// ends reports whether there is no request before a time.
func (s *schedule) ends(length time.Duration) bool {
	return s.due() >= length || s.Requests > 0 && s.n >= s.Requests
}

// step goes on to the request after the next.
func (s *schedule) step() {
	gap := 1.0
	if s.Poisson {
		gap = s.random.ExpFloat64()
	}
	s.n, s.position = s.n+1, s.position+gap
}

// hand hands out the requests of an open loop at their times, by the clock alone. One that finds every connection busy waits for one.
func (p *phase) hand() {
	defer close(p.tickets)
	// The thread waits in the kernel, which wakes it when it asks for that, and neither a millisecond later, as the timers of Go do where
	// sockets are waited for, nor up to 50 µs. It is given back as it was: were it to end, the kernel would kill the processes that it has
	// started (package proc).
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	const slack, usual = 1, 0
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, slack, 0, 0, 0)
	defer func() { _ = unix.Prctl(unix.PR_SET_TIMERSLACK, usual, 0, 0, 0) }()
	s := &schedule{Pace: p.Pace, random: rand.New(rand.NewPCG(1, 2))}
	for ; !s.ends(p.Length); s.step() {
		waited := time.Since(p.from)
		if !p.wait(s.due()) { // what was due later than that was not due yet when the phase ended
			p.countUnsent(s, waited)
			return
		}
		select {
		case p.tickets <- s.due():
		case <-p.ctx.Done():
			p.countUnsent(s, time.Since(p.from))
			return
		}
	}
	if p.Requests == 0 || s.n < p.Requests {
		p.wait(p.Length)
	}
}

// countUnsent counts the requests that were due until a time and have not been sent.
func (p *phase) countUnsent(s *schedule, until time.Duration) {
	for ; !s.ends(min(until, p.Length)); s.step() {
		p.unsent++
	}
}

// minTick is how often at most the thread wakes to see whether a request is due. Waking less often leaves more of the machine to the server.
const minTick = 25 * time.Microsecond

// wait waits until a time. It returns false if the phase ends before.
func (p *phase) wait(until time.Duration) bool {
	const long = 10 * time.Millisecond
	if left := until - time.Since(p.from); left > long && wait.Sleep(p.ctx, left-long/2) != nil {
		return false
	}
	if left := until - time.Since(p.from); left > 0 {
		ts := unix.NsecToTimespec(int64(max(left, minTick)))
		_ = unix.Nanosleep(&ts, nil) // a signal only makes it shorter, which the schedule does not mind
	}
	return p.ctx.Err() == nil
}
