package cluster

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/VictoriaMetrics/metrics"
	"github.com/nats-io/nats.go/jetstream"

	"ledgerd/engine/ledger/bubbletest"
	"ledgerd/engine/ledger/ledgertest"
)

// moment is enough for a lease that was given up to be taken by another node.
const moment = 4 * pollInterval

// fakeServer is a server with one bucket that holds one key, and a network that fails when it is told to.
type fakeServer struct {
	jetstream.KeyValue

	mu       sync.Mutex
	value    []byte // nil: there is none
	revision uint64
	deaf     bool // what is asked does not arrive
	mute     bool // what is answered does not

	before func(value string) // is called before a value is written
}

type fakeEntry struct {
	jetstream.KeyValueEntry
	value    []byte
	revision uint64
}

func (e fakeEntry) Value() []byte    { return e.value }
func (e fakeEntry) Revision() uint64 { return e.revision }

func (s *fakeServer) Get(context.Context, string) (jetstream.KeyValueEntry, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.deaf:
		return nil, context.DeadlineExceeded
	case s.value == nil:
		return nil, jetstream.ErrKeyNotFound
	}
	return fakeEntry{value: s.value, revision: s.revision}, nil
}

func (s *fakeServer) Create(ctx context.Context, key string, value []byte, _ ...jetstream.KVCreateOpt) (uint64, error) {
	return s.Update(ctx, key, value, s.revision)
}

func (s *fakeServer) Update(_ context.Context, _ string, value []byte, revision uint64) (uint64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.before != nil {
		s.before(string(value))
	}
	switch {
	case s.deaf:
		return 0, context.DeadlineExceeded
	case revision != s.revision:
		return 0, jetstream.ErrKeyRevisionMismatch
	}
	s.value = value
	if s.revision++; s.mute {
		s.mute = false
		return 0, context.DeadlineExceeded
	}
	return s.revision, nil
}

func (s *fakeServer) change(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

// fakeBuckets is what a node asks for the bucket, and for the stream.
type fakeBuckets struct {
	jetstream.JetStream
	kv     *fakeServer
	stream *fakeStream // nil: there is none
}

// Stream finds the fake one, and CreateStream makes none.
func (b fakeBuckets) Stream(context.Context, string) (jetstream.Stream, error) {
	if b.stream == nil || b.stream.state() == nil {
		return nil, jetstream.ErrStreamNotFound
	}
	return b.stream, nil
}

func (b fakeBuckets) CreateStream(context.Context, jetstream.StreamConfig) (jetstream.Stream, error) {
	return nil, ErrUnsafe // which is permanent
}

func (b fakeBuckets) KeyValue(context.Context, string) (jetstream.KeyValue, error) { return b.kv, nil }

// fakeNode returns a node that knows no server but a fake one, until the test ends.
func fakeNode(t *testing.T, name string, s *fakeServer) *Cluster {
	c := &Cluster{
		config: Config{NodeID: name, Stream: "fake"}, process: name, js: fakeBuckets{kv: s},
		logger: slog.New(slog.DiscardHandler), faults: make(map[string]string),
		pace: pace{gone: goneFor, missing: missingFor, look: lookInterval, pause: longestPause},
	}
	c.ctx, c.end = context.WithCancel(context.Background())
	c.stats.register(metrics.NewSet())
	c.log = newLog(c)
	t.Cleanup(func() {
		c.end()
		c.running.Wait()
	})
	return c
}

// startAtOnce lets a lease run that its node may take without the log.
func (l *lease) startAtOnce() {
	l.isWhole = func(time.Duration) bool { return true }
	l.cluster.running.Go(l.run)
}

// TestLeaseOutlivesLostAnswers loses the answer to the taking of a lease, and then lets nothing through for a while. At last
// somebody deletes the key: who waits for the loss of the lease still does.
func TestLeaseOutlivesLostAnswers(t *testing.T) {
	bubbletest.Test(t, func(t *testing.T) {
		s := &fakeServer{mute: true}
		l := fakeNode(t, "n", s).log.lease
		l.cluster.log.setRole(Writer)
		l.startAtOnce()
		holds := func(want bool) {
			t.Helper()
			time.Sleep(leaseLength + moment)
			if has := l.now.Load().has; !has || l.held() != want {
				t.Errorf("it has the lease: %t, holds it: %t, want %t", has, l.held(), want)
			}
		}
		holds(true)
		lost := l.now.Load().lost
		s.change(func() { s.deaf = true })
		holds(false)
		s.change(func() { s.deaf = false })
		holds(true)
		s.change(func() { s.value, s.revision = nil, s.revision+1 })
		holds(true)
		if l.now.Load().lost != lost || s.value == nil {
			t.Error("who waits for the loss of the lease waits in vain, or the key is not there again")
		}
	})
}

// F19: what the clock of a lease's holder says does not count. The lease is taken when its key has not changed for as long as it
// counts, by the clock of who watches it.
func TestLeaseOfAWrongClockIsTakenInTime(t *testing.T) {
	for _, wrong := range []time.Duration{-time.Hour, 365 * 24 * time.Hour} {
		bubbletest.Test(t, func(t *testing.T) {
			value := fmt.Appendf(nil, `{"node":"other","nonce":"x","time":%q}`, time.Now().Add(wrong).Format(time.RFC3339))
			l := fakeNode(t, "n", &fakeServer{value: value, revision: 1}).log.lease
			l.startAtOnce()
			time.Sleep(leaseLength - 1)
			early := l.held()
			time.Sleep(moment)
			if early || !l.held() {
				t.Errorf("a clock that is wrong by %v: held before its time %t, after it %t", wrong, early, l.held())
			}
		})
	}
}

// TestClaimIsSentWhenTheLeaseIsTaken has a follower wait, to whom nothing comes, while its node takes the lease.
func TestClaimIsSentWhenTheLeaseIsTaken(t *testing.T) {
	bubbletest.Test(t, func(t *testing.T) {
		c := fakeNode(t, "n", &fakeServer{})
		began, f := time.Now(), follower{log: c.log, feed: &feed{messages: make(chan jetstream.Msg), broken: make(chan error)}}
		c.running.Go(func() {
			time.Sleep(pollInterval / 4)
			c.log.lease.isWhole = func(time.Duration) bool { return true }
			must(t, c.log.lease.step(c.ctx))
		})
		_, err := f.step(c.ctx)
		must(t, err)
		ledgertest.Equal(t, time.Since(began), pollInterval/4, "until it looks whether it may claim the log")
	})
}

// TestLeaseIsTakenByWhoHoldsTheLog lets two nodes wait for it. One of them lags behind.
func TestLeaseIsTakenByWhoHoldsTheLog(t *testing.T) {
	bubbletest.Test(t, func(t *testing.T) {
		s := &fakeServer{}
		late, whole := fakeNode(t, "late", s), fakeNode(t, "whole", s)
		var warned strings.Builder
		late.logger = slog.New(slog.NewTextHandler(&warned, &slog.HandlerOptions{Level: slog.LevelWarn}))
		late.log.noteEnd(time.Now(), 1000)
		late.log.noteTaken(10)
		slow := late.log.lease
		late.running.Go(slow.run)
		time.Sleep(time.Minute)
		ledgertest.MustHold(t, !slow.held(), "who lags behind holds the lease")
		whole.log.noteTaken(1000)
		whole.log.noteEnd(time.Now(), 1000)
		fast := whole.log.lease
		whole.running.Go(fast.run)
		time.Sleep(moment)
		ledgertest.MustHold(t, fast.held(), "who holds the whole log does not hold the lease")
		// What was known a while ago is not enough, nor to keep it without writing. Who becomes the writer just then learns of it.
		late.log.noteTaken(1000)
		lost, given := fast.now.Load().lost, 0
		before := func(value string) {
			if !strings.Contains(value, `"node":""`) {
				return
			}
			given++
			select {
			case <-lost:
			default:
				t.Error("the key says that the lease is given up before its holder knows")
			}
			ledgertest.Holds(t, !fast.now.Load().has, "the key says that the lease is given up before its holder says so")
		}
		s.change(func() { s.before = before })
		time.Sleep(4*time.Second - moment)
		ledgertest.MustHold(t, fast.held(), "who held the log 4 s ago gave the lease up")
		time.Sleep(2 * time.Second)
		ledgertest.MustHold(t, !fast.held(), "who held the log 6 s ago, and does not write, keeps the lease")
		s.change(func() { ledgertest.Equal(t, given, 1, "how often the key said that the lease is given up") })
		time.Sleep(time.Minute)
		ledgertest.MustHold(t, !slow.held(), "who held the log a minute ago holds the lease")
		late.log.noteEnd(time.Now(), 1000)
		time.Sleep(moment)
		ledgertest.MustHold(t, slow.held(), "who has caught up does not hold the lease")
		late.log.setRole(Writer)
		time.Sleep(time.Minute)
		ledgertest.MustHold(t, slow.held(), "who writes does not keep the lease")
		// Who was deposed does not know that it holds the whole log, and sends no claim that could be refused.
		late.log.setRole(Deposed)
		time.Sleep(moment)
		ledgertest.MustHold(t, !slow.now.Load().has, "who was deposed keeps the lease")
		ledgertest.Equal(t, warned.String(), "", "what it warns of")
	})
}

// TestLeaseIsLeftToOthersWhereNoClaimIsStored has a node hold the whole log and the lease, and not come to write, as where its user may not
// write to the log: others write then, and it tries again where there is none.
func TestLeaseIsLeftToOthersWhereNoClaimIsStored(t *testing.T) {
	bubbletest.Test(t, func(t *testing.T) {
		s := &fakeServer{}
		start := func(name string) *lease {
			l := fakeNode(t, name, s).log.lease
			l.startAtOnce()
			time.Sleep(moment)
			return l
		}
		refused := start("refused")
		time.Sleep(claimPatience - 2*moment)
		ledgertest.MustHold(t, refused.held(), "a claim may take its time, and the lease is given up")
		time.Sleep(2 * moment)
		ledgertest.MustHold(t, !refused.now.Load().has, "no claim is stored, and the lease is kept")
		time.Sleep(leaseLength + moment)
		ledgertest.MustHold(t, refused.held(), "nobody else wants the lease, and it is not taken again")
		other := start("other")
		time.Sleep(claimPatience)
		ledgertest.MustHold(t, other.held(), "another node waits, and does not get the lease")
		other.cluster.log.setRole(Writer)
		time.Sleep(time.Minute)
		ledgertest.MustHold(t, other.held() && !refused.held(), "who writes does not keep the lease")
	})
}

// TestLeaseIsGivenUp gives it up for good: before it is held, while another node waits for it, and while none does.
func TestLeaseIsGivenUp(t *testing.T) {
	bubbletest.Test(t, func(t *testing.T) {
		s := &fakeServer{}
		start := func(name string, resigns bool) *lease {
			l := fakeNode(t, name, s).log.lease
			if resigns {
				l.resign()
			}
			l.startAtOnce()
			time.Sleep(moment)
			return l
		}
		holds := func(what string, l *lease, want bool) {
			t.Helper()
			ledgertest.Equal(t, l.held(), want, "%s: whether node %s holds the lease", what, l.cluster.config.NodeID)
		}
		holds("it resigned before", start("early", true), false)
		a := start("a", false)
		holds("nobody else does", a, true)
		b := start("b", false)
		a.resign()
		holds("it resigned", a, false)
		time.Sleep(moment)
		holds("the other leaves that to it", b, true)
		b.resign()
		time.Sleep(leaseLength + moment)
		holds("nobody does, and it resigned long ago", a, false)
	})
}
