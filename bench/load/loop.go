package load

import (
	"context"
	"fmt"
	"slices"
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

// timerEvent is the number of the timer among the connections that epoll tells of.
const timerEvent = -1

// loop is one thread of a load. The goroutine that runs a phase owns it, but for the counts.
type loop struct {
	config Config
	epoll  int
	timer  int // file
	conns  []conn
	events []unix.EpollEvent
	buffer []byte
	next   int // request of the script
	base   time.Time

	mu     sync.Mutex // guards counts
	counts *Counts

	// Of the phase, times in nanoseconds since base:

	now     int64 // as of the last look
	from    int64 // when it began
	until   int64 // requests are due before
	closes  int64 // requests are sent before
	due     int   // requests of the rate that were sent
	ready   []int // connections with room for a request, one entry for each
	resting []int // the same, after a failure: they become ready when the connections are looked after
	waiting int   // requests in flight
	keptAt  int64 // when the connections were last looked after
}

func newLoop(c Config, first int) (*loop, error) {
	l := &loop{
		config: c, epoll: -1, timer: -1, next: first, base: time.Now(), counts: NewCounts(),
		conns: make([]conn, c.Connections), events: make([]unix.EpollEvent, 256), buffer: make([]byte, readBytes),
	}
	for i := range l.conns {
		l.conns[i] = conn{fd: -1, sent: make([]request, c.Depth)}
		if len(c.Locals) > 0 {
			l.conns[i].local = c.Locals[i%len(c.Locals)]
		}
	}
	var err error
	if l.epoll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err == nil {
		l.timer, err = unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	}
	if err == nil {
		err = unix.EpollCtl(l.epoll, unix.EPOLL_CTL_ADD, l.timer, &unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLET, Fd: timerEvent})
	}
	if err != nil {
		l.close()
		return nil, fmt.Errorf("cannot wait for connections: %w", err)
	}
	return l, nil
}

func (l *loop) close() {
	for i := range l.conns {
		l.conns[i].shut()
	}
	_, _ = unix.Close(l.timer), unix.Close(l.epoll) // they are opened or -1
}

func (l *loop) clock() int64 { return int64(time.Since(l.base)) }

// phase sends for so long and waits for the responses.
func (l *loop) phase(ctx context.Context, length time.Duration) (*Counts, error) {
	l.until, l.closes = 0, 0
	err := l.wait(0) // a server may have closed connections meanwhile
	l.from = l.clock()
	l.now, l.keptAt, l.due = l.from, l.from, 0
	l.until = l.from + int64(length)
	l.closes = l.until + int64(catchUp)
	if err == nil {
		err = l.setTimer()
	}
	l.begin()
	for err == nil {
		if ctx.Err() != nil {
			l.stop()
		}
		l.sendDue()
		if l.over() {
			break
		}
		err = l.wait(keepInterval)
	}
	l.end()
	return l.take(), err
}

// take returns what was counted since the last time.
func (l *loop) take() *Counts {
	l.mu.Lock()
	defer l.mu.Unlock()
	counts := l.counts
	l.counts = NewCounts()
	return counts
}

// stop ends the sending now.
func (l *loop) stop() {
	l.until = min(l.until, l.now)
	l.closes = min(l.closes, l.now)
}

// begin makes all connections ready, which in a closed loop send at once.
func (l *loop) begin() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ready, l.resting = l.ready[:0], l.resting[:0]
	for i := range l.conns {
		l.again(i, l.config.Depth)
	}
}

// end counts what is still in flight as failed, whose connections are of no more use, and what was
// due and not sent.
func (l *loop) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range l.conns {
		if c := &l.conns[i]; c.count > 0 {
			l.counts.Errors[noneAtEnd] += c.count
			c.shut()
		}
	}
	l.waiting = 0
	for ; l.config.Rate > 0 && l.dueAt(l.due) < l.until; l.due++ {
		l.counts.Unsent++
	}
	l.counts.Took = time.Duration(l.now - l.from)
}

// over reports whether nothing more is sent and the responses are there.
func (l *loop) over() bool {
	backlog := l.config.Rate > 0 && l.dueAt(l.due) < l.until && l.now < l.closes
	if l.now < l.until || backlog {
		return false
	}
	return l.waiting == 0 || l.now >= l.until+int64(grace)
}

// dueAt returns when a request of the rate is due.
func (l *loop) dueAt(i int) int64 {
	return l.from + int64(float64(i)/l.config.Rate*float64(time.Second))
}

// sendDue sends what is due, as far as there are connections for it.
func (l *loop) sendDue() {
	if l.config.Rate == 0 || len(l.ready) == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.ready) > 0 && l.now < l.closes {
		at := l.dueAt(l.due)
		if at > l.now || at >= l.until {
			return
		}
		i := l.ready[0]
		l.ready = l.ready[1:]
		l.due++
		l.send(i, 1, at)
	}
}

// setTimer has the timer wake the thread when requests of the rate are due.
func (l *loop) setTimer() error {
	var spec unix.ItimerSpec // all zero: no timer
	if l.config.Rate > 0 {
		spec.Interval = unix.NsecToTimespec(max(int64(minTick), int64(float64(time.Second)/l.config.Rate)))
		spec.Value = unix.NsecToTimespec(max(int64(minTick), l.dueAt(l.due)-l.clock()))
	}
	if err := unix.TimerfdSettime(l.timer, 0, &spec, nil); err != nil {
		return fmt.Errorf("cannot set a timer: %w", err)
	}
	return nil
}

// wait waits for news, at most so long, and handles them.
func (l *loop) wait(most time.Duration) error {
	n, err := unix.EpollWait(l.epoll, l.events, int(most.Milliseconds()))
	if err != nil && err != unix.EINTR {
		return fmt.Errorf("cannot wait for connections: %w", err)
	}
	l.now = l.clock()
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range max(0, n) {
		if e := &l.events[i]; e.Fd == timerEvent {
			var expired [8]byte
			_, _ = unix.Read(l.timer, expired[:]) // without a read the timer does not go on
		} else {
			l.handle(int(e.Fd), e.Events)
		}
	}
	if l.now-l.keptAt >= int64(keepInterval) {
		return l.keep()
	}
	return nil
}

// keep gives up responses that take too long, sends again on connections that failed, and
// corrects the timer, whose interval is rounded.
func (l *loop) keep() error {
	l.keptAt = l.now
	for i := range l.conns {
		if c := &l.conns[i]; c.count > 0 && l.now-c.since > int64(patience) {
			l.broken(i, errTimeout)
		}
	}
	rested := slices.Clone(l.resting)
	l.resting = l.resting[:0]
	for _, i := range rested {
		l.again(i, 1)
	}
	return l.setTimer()
}
