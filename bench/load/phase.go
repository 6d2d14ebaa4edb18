package load

import (
	"context"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// phase is one time of asking. Times in it count from its beginning.
type phase struct {
	*Load
	ctx     context.Context // nothing is sent any more when it is done
	stop    context.CancelFunc
	from    time.Time
	length  time.Duration
	tickets chan time.Duration // in an open loop: when requests are due, handed to connections that are free
	unsent  int                // those that were due and are not sent
}

// take returns when the next request of a connection is due, once it is. There is none when the phase sends nothing more.
func (p *phase) take() (due time.Duration, more bool) {
	if p.config.Rate > 0 {
		due, more = <-p.tickets
		return due, more
	}
	return time.Since(p.from), p.ctx.Err() == nil
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
	n, until := 0, p.length
	due := func() time.Duration { return time.Duration(float64(n) / p.config.Rate * float64(time.Second)) }
	for ; due() < p.length && p.wait(due()); n++ {
		select {
		case p.tickets <- due():
			continue
		case <-p.ctx.Done():
		}
		break
	}
	if !p.wait(p.length) {
		until = min(p.length, time.Since(p.from))
	}
	for ; due() < until; n++ {
		p.unsent++
	}
}

// minTick is how often at most the thread wakes to see whether a request is due. Waking less often leaves more of the machine to the server.
const minTick = 25 * time.Microsecond

// wait waits until a time. It returns false if the phase ends before.
func (p *phase) wait(until time.Duration) bool {
	const long = 10 * time.Millisecond
	if left := until - time.Since(p.from); left > long {
		select {
		case <-time.After(left - long/2):
		case <-p.ctx.Done():
			return false
		}
	}
	if left := until - time.Since(p.from); left > 0 {
		ts := unix.NsecToTimespec(int64(max(left, minTick)))
		_ = unix.Nanosleep(&ts, nil) // a signal only makes it shorter, which the schedule does not mind
	}
	return p.ctx.Err() == nil
}
