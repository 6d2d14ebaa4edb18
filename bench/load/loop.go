package load

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// readBytes is the most that is read at once.
	readBytes = 64 << 10
	// patience is how long a response may take.
	patience = 10 * time.Second
	// grace is how long after a phase its last responses are waited for.
	grace = 2 * time.Second
	// catchUp is how long after a phase requests are sent that were due in it: a backlog that takes
	// longer is overload, and stays unsent.
	catchUp = 100 * time.Millisecond
	// keepInterval is how often the connections are looked after. An idle loop wakes as often.
	keepInterval = 100 * time.Millisecond
	// verifyEvery is of how many responses one is verified.
	verifyEvery = 256
	// minTick is how often at most a thread wakes to see whether a request is due. Waking less often
	// leaves more of the machine to the server.
	minTick = 25 * time.Microsecond
)

// loop is one thread of a load.
type loop struct {
	config Config
	epoll  int
	conns  []conn
	events []unix.EpollEvent
	buffer []byte
	next   int // request of the script
	base   time.Time

	mu     sync.Mutex // is held by the goroutine of a phase, but while it waits for events
	counts *Counts

	// Of the phase, times in nanoseconds since base:

	now     int64 // as of the last look
	from    int64 // when it began
	until   int64 // requests are due before
	closes  int64 // requests are sent before
	asked   int   // requests that were sent
	ready   []int // connections with room for a request
	waiting int   // requests in flight
	keptAt  int64 // when the connections were last looked after
}

func newLoop(c Config, epoll, first int) *loop {
	l := &loop{
		config: c, epoll: epoll, next: first, base: time.Now(), counts: NewCounts(),
		conns: make([]conn, c.Connections), events: make([]unix.EpollEvent, c.Connections), buffer: make([]byte, readBytes),
	}
	for i := range l.conns {
		l.conns[i].fd = -1
	}
	return l
}

func (l *loop) close() {
	for i := range l.conns {
		l.conns[i].shut()
	}
	_ = unix.Close(l.epoll)
	l.epoll = -1
}

func (l *loop) clock() int64 { return int64(time.Since(l.base)) }

// phase sends for so long and waits for the responses.
func (l *loop) phase(ctx context.Context, length time.Duration) error {
	// The thread waits in the kernel, which wakes it when it asks for that, not up to 50 µs later. It is given back as it was: were it to
	// end, the kernel would kill the processes that it has started (package proc).
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	const slack, usual = 1, 0
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, slack, 0, 0, 0)
	defer func() { _ = unix.Prctl(unix.PR_SET_TIMERSLACK, usual, 0, 0, 0) }()
	l.mu.Lock()
	defer l.mu.Unlock()
	err := l.wait(0) // a server may have closed connections meanwhile
	l.from = l.clock()
	l.now, l.asked = l.from, 0
	l.until = l.from + int64(length)
	l.closes = l.until + int64(catchUp)
	l.keep()
	for err == nil {
		if ctx.Err() != nil {
			l.stop()
		}
		l.send()
		if l.over() {
			break
		}
		err = l.wait(keepInterval)
	}
	l.end()
	return err
}

// stop ends the sending now.
func (l *loop) stop() {
	l.until = min(l.until, l.now)
	l.closes = min(l.closes, l.now)
}

// end counts what is still in flight as failed, whose connections are of no more use, and what was
// due and not sent.
func (l *loop) end() {
	l.stop()
	for i := range l.conns {
		if len(l.conns[i].sent) > 0 {
			l.broken(i, errAtEnd)
		}
	}
	for ; l.due() < l.until; l.asked++ {
		l.counts.Unsent++
	}
	l.counts.Took = time.Duration(l.now - l.from)
}

// over reports whether nothing more is sent and the responses are there.
func (l *loop) over() bool {
	if l.now < l.until || l.pending() {
		return false
	}
	return l.waiting == 0 || l.now >= l.until+int64(grace)
}

// due returns when the next request is due, which in a closed loop is now.
func (l *loop) due() int64 {
	if l.config.Rate == 0 {
		return l.now
	}
	return l.from + int64(float64(l.asked)/l.config.Rate*float64(time.Second))
}

// pending reports whether the next request is to be sent when it is due and there is a connection for it.
func (l *loop) pending() bool { return l.due() < l.until && l.now < l.closes }

// send sends what is due, as far as there are connections for it.
func (l *loop) send() {
	for len(l.ready) > 0 && l.pending() && l.due() <= l.now {
		i := l.ready[0]
		l.ready = l.ready[1:]
		l.conns[i].ready = false
		if err := l.ask(i); err != nil {
			l.broken(i, err)
		} else {
			l.again(i)
		}
	}
}

// wait waits for news until the next request can be sent or no more are due, at most so long, and handles them.
func (l *loop) wait(most time.Duration) error {
	at := l.until
	if len(l.ready) > 0 && l.pending() {
		at = l.due()
	}
	if at > l.now {
		most = min(most, max(minTick, time.Duration(at-l.clock())))
	}
	timeout := unix.NsecToTimespec(int64(most))
	l.mu.Unlock()
	// epoll_wait(2) alone counts in milliseconds.
	_, err := unix.Ppoll([]unix.PollFd{{Fd: int32(l.epoll), Events: unix.POLLIN}}, &timeout, nil)
	n := 0
	if err == nil {
		n, err = unix.EpollWait(l.epoll, l.events, 0)
	}
	l.mu.Lock()
	if err != nil && err != unix.EINTR {
		return fmt.Errorf("cannot wait for connections: %w", err)
	}
	l.now = l.clock()
	for _, e := range l.events[:max(0, n)] {
		l.handle(int(e.Fd), e.Events)
		l.send()
	}
	if l.now-l.keptAt >= int64(keepInterval) {
		l.keep()
	}
	return nil
}

// keep gives up responses that take too long, and has all connections with room be ready.
func (l *loop) keep() {
	l.keptAt = l.now
	for i := range l.conns {
		if c := &l.conns[i]; len(c.sent) > 0 && l.now-c.sent[0].at > int64(patience) {
			l.broken(i, errTimeout)
		}
		l.again(i)
	}
}

// again has a connection be ready, if it has room for a request.
func (l *loop) again(i int) {
	if c := &l.conns[i]; !c.ready && len(c.sent) < l.config.Depth {
		c.ready = true
		l.ready = append(l.ready, i)
	}
}
