package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

const (
	// loadRoom is the most that is read at once.
	loadRoom = 64 << 10
	// loadOpening is how many connections are opened at once, far fewer than wait at a socket
	// that listens.
	loadOpening = 128
	// loadPatience is how long answers and connections may take.
	loadPatience = 10 * time.Second
	// loadDrain is for how long after a phase it is still asked what was due in it.
	loadDrain = time.Second
	// loadKeep is how often connections are looked after.
	loadKeep = time.Second
	// loadFailures is how many requests in a row may go unanswered.
	loadFailures = 1000
	// loadChecks is of how many answers one is looked at.
	loadChecks = 256
	// loadTick is how often at most a thread looks whether a request is due. Fewer looks leave
	// more of the machine to the server.
	loadTick = 25 * time.Microsecond
)

var errOverdue = fmt.Errorf("there is no answer after %v", loadPatience)

// timerEvent is where epoll tells of the timer instead of a connection.
const timerEvent = -1

// loadLoop is one thread of a load.
type loadLoop struct {
	config loadConfig
	epoll  int
	timer  int // file
	conns  []loadConn
	events []syscall.EpollEvent
	room   []byte
	next   int // request of the script
	base   time.Time
	ticks  int // of the timer

	mu     sync.Mutex // held while counts may change
	counts *loadCounts
	enough atomic.Bool // ends the phase

	// Of the phase:

	now      int64 // nanoseconds since base, as of the last look
	from     int64 // when it began
	until    int64 // requests are due before
	due      int   // requests of a rate that were asked for
	ready    []int // connections with room for a request, one entry for each
	failures int   // in a row
	waiting  int   // requests on the way
	fault    error // why the phase ends early
	lateAt   int   // the last request that was counted as late, and one
	kept     int64 // when the connections were last looked after
}

func newLoadLoop(c loadConfig, first int) (*loadLoop, error) {
	l := &loadLoop{
		config: c, epoll: -1, timer: -1, next: first, base: time.Now(), counts: newLoadCounts(),
		conns: make([]loadConn, c.Connections), events: make([]syscall.EpollEvent, 256), room: make([]byte, loadRoom),
	}
	for i := range l.conns {
		l.conns[i] = loadConn{fd: -1, asked: make([]loadAsked, c.Depth)}
		if len(c.Locals) > 0 {
			l.conns[i].local = c.Locals[i%len(c.Locals)]
		}
	}
	var err error
	if l.epoll, err = syscall.EpollCreate1(syscall.EPOLL_CLOEXEC); err != nil {
		return nil, fmt.Errorf("cannot wait for connections: %w", err)
	}
	const nonblock = syscall.O_NONBLOCK | syscall.O_CLOEXEC
	timer, _, errno := syscall.Syscall(syscall.SYS_TIMERFD_CREATE, 1 /* CLOCK_MONOTONIC */, nonblock, 0)
	if errno != 0 {
		l.close()
		return nil, fmt.Errorf("cannot make a timer: %w", errno)
	}
	l.timer = int(timer)
	event := syscall.EpollEvent{Events: syscall.EPOLLIN | edgeTriggered, Fd: timerEvent}
	if err := syscall.EpollCtl(l.epoll, syscall.EPOLL_CTL_ADD, l.timer, &event); err != nil {
		l.close()
		return nil, fmt.Errorf("cannot wait for a timer: %w", err)
	}
	return l, nil
}

// edgeTriggered asks to be told of news only; the constant of the package is negative.
const edgeTriggered = 1 << 31

func (l *loadLoop) close() {
	for i := range l.conns {
		l.conns[i].shut()
	}
	for _, fd := range []*int{&l.timer, &l.epoll} {
		if *fd >= 0 {
			_ = syscall.Close(*fd)
			*fd = -1
		}
	}
}

func (l *loadLoop) clock() int64 { return int64(time.Since(l.base)) }

// connect opens all connections.
func (l *loadLoop) connect(ctx context.Context) error {
	l.fault = nil
	late := l.clock() + int64(loadPatience)
	for opened, open := 0, 0; open < len(l.conns); {
		for opened < len(l.conns) && opened-open < loadOpening {
			if err := l.open(opened); err != nil {
				return err
			}
			opened++
		}
		if err := l.wait(); err != nil {
			return err
		}
		open = 0
		for i := range opened {
			if !l.conns[i].opening {
				open++
			}
		}
		switch {
		case l.fault != nil:
			return l.fault
		case ctx.Err() != nil:
			return ctx.Err()
		case l.now > late:
			return fmt.Errorf("%d of %d connections are open after %v", open, len(l.conns), loadPatience)
		}
	}
	return nil
}

// phase asks for so long and waits for the answers.
func (l *loadLoop) phase(ctx context.Context, length time.Duration) (*loadCounts, error) {
	l.handOver() // what came between phases
	l.fault, l.failures, l.due, l.lateAt, l.ready = nil, 0, 0, 0, l.ready[:0]
	l.from = l.clock()
	l.now, l.until, l.kept = l.from, l.from+int64(length), l.from
	if err := l.tick(); err != nil {
		return nil, err
	}
	l.begin()
	for l.fault == nil && ctx.Err() == nil {
		if l.enough.Load() {
			l.until = min(l.until, l.now)
		}
		if l.config.Rate > 0 {
			l.askDue()
		}
		if l.over() {
			break
		}
		if err := l.wait(); err != nil {
			return nil, err
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.waiting > 0 { // such connections are of no use any more
		l.counts.fail(l.waiting, errOverdue)
		l.waiting = 0
		for i := range l.conns {
			l.conns[i].shut()
		}
	}
	for ; l.config.Rate > 0 && l.dueAt(l.due) < min(l.until, l.now); l.due++ {
		l.counts.Unsent++
	}
	l.counts.Took = time.Duration(l.now - l.from)
	return l.counts, errors.Join(l.fault, ctx.Err())
}

// handOver returns what was counted since the last time.
func (l *loadLoop) handOver() *loadCounts {
	l.mu.Lock()
	defer l.mu.Unlock()
	counts := l.counts
	l.counts = newLoadCounts()
	return counts
}

// begin asks what a phase begins with.
func (l *loadLoop) begin() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range l.conns {
		if l.config.Fresh {
			l.conns[i].shut() // its server may not have closed it yet
		}
		if l.config.Rate == 0 {
			l.ask(i, l.config.Depth, l.now)
		} else {
			l.ready = append(l.ready, slices.Repeat([]int{i}, l.config.Depth)...)
		}
	}
}

// over reports whether the phase is: nothing more is to be asked, and nothing answered.
func (l *loadLoop) over() bool {
	if l.now < l.until {
		return false
	}
	asked := l.config.Rate == 0 || l.dueAt(l.due) >= l.until || l.drained()
	return asked && l.waiting == 0 || l.now > l.until+int64(loadDrain+loadPatience)
}

// drained reports whether it is too late to ask what was due in the phase.
func (l *loadLoop) drained() bool { return l.now > l.until+int64(loadDrain) }

// dueAt returns when a request of the rate is due.
func (l *loadLoop) dueAt(i int) int64 {
	return l.from + int64(float64(i)/l.config.Rate*float64(time.Second))
}

// askDue asks what is due, as far as there are connections for it.
func (l *loadLoop) askDue() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for {
		at := l.dueAt(l.due)
		if at > l.now || at >= l.until || l.drained() {
			return
		}
		if len(l.ready) == 0 {
			if l.lateAt != l.due+1 {
				l.lateAt = l.due + 1
				l.counts.Late++
			}
			return
		}
		i := l.ready[0]
		l.ready = l.ready[1:]
		l.ask(i, 1, at)
		l.due++
	}
}

// tick has the timer wake the thread often enough for a rate.
func (l *loadLoop) tick() error {
	interval := 100 * time.Millisecond // so that the end is seen
	if l.config.Rate > 0 {
		interval = max(loadTick, min(interval, time.Duration(float64(time.Second)/l.config.Rate)))
	}
	first := interval
	if l.config.Rate > 0 {
		first = max(loadTick, time.Duration(l.dueAt(l.due)-l.clock()))
	}
	spec := [2]syscall.Timespec{syscall.NsecToTimespec(int64(interval)), syscall.NsecToTimespec(int64(first))}
	_, _, errno := syscall.Syscall6(syscall.SYS_TIMERFD_SETTIME, uintptr(l.timer), 0, uintptr(unsafe.Pointer(&spec)), 0, 0, 0)
	if errno != 0 {
		return fmt.Errorf("cannot set a timer: %w", errno)
	}
	return nil
}

// wait waits for news and does what they ask for.
func (l *loadLoop) wait() error {
	const turn = 100 // milliseconds, so that the end of a context is seen
	n, err := syscall.EpollWait(l.epoll, l.events, turn)
	if err != nil && !errors.Is(err, syscall.EINTR) {
		return fmt.Errorf("cannot wait for connections: %w", err)
	}
	l.now = l.clock()
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range max(0, n) {
		if e := &l.events[i]; e.Fd != timerEvent {
			l.news(int(e.Fd), e.Events)
		} else if err := l.ticked(); err != nil {
			return err
		}
	}
	return nil
}

// ticked takes the news of the timer, without which it does not go on. Now and then it looks
// after the connections, and sets the timer again: its interval is rounded.
func (l *loadLoop) ticked() error {
	l.ticks++
	var expired [8]byte
	_, _, errno := syscall.RawSyscall(syscall.SYS_READ, uintptr(l.timer), uintptr(unsafe.Pointer(&expired)), unsafe.Sizeof(expired))
	if errno != 0 && errno != syscall.EAGAIN {
		return fmt.Errorf("cannot read a timer: %w", errno)
	}
	if l.now-l.kept < int64(loadKeep) {
		return nil
	}
	l.kept = l.now
	for i := range l.conns {
		if c := &l.conns[i]; c.count > 0 && l.now-c.since > int64(loadPatience) {
			l.broken(i, errOverdue)
		}
	}
	return l.tick()
}
