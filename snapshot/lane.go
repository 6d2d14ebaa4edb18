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

// Asker says who asks an archive, and until when an answer is of use.
type Asker struct {
	Client   netip.Addr // its turns are counted; zero is one client, too
	Deadline time.Time
}

// errLate says that a question was not answered before its deadline.
var errLate = fmt.Errorf("history on disk is not read before the deadline: %w", ledger.ErrUnavailable)

// errCrowded says that too many wait for a turn already.
var errCrowded = fmt.Errorf("too many questions wait for history on disk: %w", ledger.ErrUnavailable)

// lane is where questions of a kind wait. A goroutine, which is there while any waits, answers one after the other. Clients have turns: a client's second
// question waits for the first ones of all others, as far as they came before its turn. Where too many wait, one of the client with the most gives way.
type lane struct {
	log *slog.Logger

	mu      sync.Mutex
	waiting []*question             // by round, and of a round in the order in which they came
	present *question               // the one that is answered; nil: there is no goroutine
	round   int                     // of the question that is answered, or was last
	served  map[netip.Addr]struct{} // clients that had a turn in the round; only some of them where they are many
}

// question is a question that waits in a lane, or is answered. Nobody looks at one any more that was not answered before its deadline.
type question struct {
	client   netip.Addr
	round    int // above those of its client's questions before
	answer   func() error
	ended    chan struct{} // closed once the rest is set
	err      error
	panicked any // what the answer panicked with; nil: it did not
}

// lowPriority is the niceness of the threads that read history: others have nine tenths of a processor that both want. Requests for what is in
// memory then take as long beside readers of history as without: half of them took 0.34 ms, and 1.0 ms with a thread like all others.
const lowPriority = 10

// ask has the goroutine of the lane call answer, and returns its error. It returns an error that matches ledger.ErrUnavailable at the deadline, or if
// too many wait. Where the disk stands still answer runs on after that: what it writes must not be read after an error.
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

// enter reports whether a question may wait.
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

// leave takes a question away from those that wait, if it is one. It reports false if the question has ended meanwhile.
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

// nextLocked makes the question that waits first the present one, nil where none waits.
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

// run answers a question. Who asked has a panic of that, too, and it is logged here, where its stack tells where it came from.
func (l *lane) run(q *question) {
	defer close(q.ended)
	defer func() {
		if q.panicked = recover(); q.panicked != nil {
			l.log.Error("a question of history panicked", "panic", fmt.Sprint(q.panicked), "stack", string(debug.Stack()))
		}
	}()
	q.err = q.answer()
}
