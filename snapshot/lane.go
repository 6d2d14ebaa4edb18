package snapshot

import (
	"fmt"
	"log/slog"
	"net/netip"
	"runtime"
	"runtime/debug"
	"slices"
	"sort"
	"sync"
	"syscall"
	"time"

	"ledgerd/engine/ledger"
)

// Asker is the client that a question to an archive comes from, and the time until which it waits for the answer.
type Asker struct {
	Client   netip.Addr // clients take turns; all questions with the zero address count as one client's
	Deadline time.Time
}

// errLate says that a question was not answered before its deadline.
var errLate = fmt.Errorf("history on disk is not read before the deadline: %w", ledger.ErrUnavailable)

// errCrowded says that too many wait for a turn already.
var errCrowded = fmt.Errorf("too many questions wait for history on disk: %w", ledger.ErrUnavailable)

// lane is the queue of the questions of one kind. While it is not empty, a goroutine answers one question after the other. Clients
// take turns, round by round: a client's second question waits for the first questions of all others that come before it is
// answered. When the queue is full, a question of the client with the most questions is refused.
type lane struct {
	log *slog.Logger

	mu      sync.Mutex
	waiting []*question             // by round and, in a round, in order of arrival
	present *question               // the one that is being answered; nil: there is no goroutine
	round   int                     // of the present question, or of the last one
	served  map[netip.Addr]struct{} // clients that had a turn in the round; only some of them where they are many
}

// question is a question that waits in a lane or is being answered. After its deadline its caller no longer reads it.
type question struct {
	client   netip.Addr
	round    int // above those of its client's questions before
	answer   func() error
	ended    chan struct{} // closed once the rest is set
	err      error
	panicked any // what the answer panicked with; nil: it did not
}

// lowPriority is the niceness of the threads that read history: other threads get nine tenths of a processor that both want.
// Requests for what is in memory are then as fast during reads of history as without them: the median was 0.34 ms, and 1.0 ms
// with a thread of normal priority.
const lowPriority = 10

// passProcessor lets other threads run that wait for the processor. Whoever reads chunks calls it before each, every tenth of a
// millisecond or so for those of history: the kernel lets a thread go on for milliseconds, however low its priority, while a request waits.
func passProcessor() { _, _, _ = syscall.RawSyscall(syscall.SYS_SCHED_YIELD, 0, 0, 0) } // it cannot fail

// ask calls answer on the lane's goroutine and returns its error. It returns an error that matches ledger.ErrUnavailable at the
// deadline, or if too many questions wait. If the disk stalls, answer goes on after that: the caller must not read what it writes
// after an error.
func (l *lane) ask(by Asker, answer func() error) error {
	q := &question{client: by.Client, answer: answer, ended: make(chan struct{})}
	if !l.enter(q) {
		return errCrowded
	}
	timer := time.NewTimer(time.Until(by.Deadline))
	defer timer.Stop()
	select {
	case <-q.ended:
	case <-timer.C:
		if l.leave(q) {
			return errLate
		}
	}
	if q.panicked != nil {
		panic(q.panicked)
	}
	return q.err
}

// enter enqueues a question. It returns false if the lane is full and no other question gives way.
func (l *lane) enter(q *question) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	q.round = l.round
	if _, had := l.served[q.client]; had {
		q.round++
	}
	for _, other := range l.waiting {
		if other.client == q.client {
			q.round = other.round + 1
		}
	}
	if last := len(l.waiting) - 1; last+1 >= mostWaiting {
		given := l.waiting[last]
		if given.round <= q.round {
			return false
		}
		l.waiting = l.waiting[:last]
		given.err = errCrowded
		close(given.ended)
	}
	at := sort.Search(len(l.waiting), func(i int) bool { return l.waiting[i].round > q.round })
	l.waiting = slices.Insert(l.waiting, at, q)
	if l.present == nil {
		l.nextLocked()
		go l.work()
	}
	return true
}

// leave removes a question from the queue if it still waits. It returns false if the question has ended meanwhile.
func (l *lane) leave(q *question) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-q.ended:
		return false
	default:
	}
	if at := slices.Index(l.waiting, q); at >= 0 {
		l.waiting = slices.Delete(l.waiting, at, at+1)
	}
	return true
}

// nextLocked makes the first question of the queue the present one; nil if the queue is empty.
func (l *lane) nextLocked() {
	l.present = nil
	if len(l.waiting) > 0 {
		l.present = l.waiting[0]
		l.waiting = slices.Delete(l.waiting, 0, 1)
		if l.served == nil || l.round != l.present.round || len(l.served) >= mostWaiting {
			l.round, l.served = l.present.round, make(map[netip.Addr]struct{})
		}
		l.served[l.present.client] = struct{}{}
	}
}

// work answers questions until none waits.
func (l *lane) work() {
	runtime.LockOSThread() // for good: the thread ends with the goroutine, since none may raise its priority again
	_ = syscall.Setpriority(syscall.PRIO_PROCESS, syscall.Gettid(), lowPriority)
	for q := l.present; q != nil; {
		l.run(q)
		l.mu.Lock()
		l.nextLocked()
		q = l.present
		l.mu.Unlock()
	}
}

// run answers a question. If the answer panics, so does the caller of ask; the panic is logged here, where its stack is known.
func (l *lane) run(q *question) {
	defer close(q.ended)
	defer func() {
		if q.panicked = recover(); q.panicked != nil {
			l.log.Error("a question of history panicked", "panic", fmt.Sprint(q.panicked), "stack", string(debug.Stack()))
		}
	}()
	q.err = q.answer()
}
