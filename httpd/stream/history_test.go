package stream

import (
	"context"
	"errors"
	"io"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fasthttp/websocket"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/ledgertest"
)

// fakeHistory is a log of publications. It shows no more than a History has to.
type fakeHistory struct {
	mu     sync.Mutex
	all    []*ledger.Publication
	oldest ledger.Seq
	err    error // of reading, if set
}

func (f *fakeHistory) add(p *ledger.Publication) {
	if f == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.all = append(f.all, p)
}

func (f *fakeHistory) Oldest() ledger.Seq {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.oldest
}

func (f *fakeHistory) Past(after ledger.Seq) func(context.Context, func(*ledger.Publication) bool) error {
	next := -1 // in all
	return func(_ context.Context, visit func(*ledger.Publication) bool) error {
		f.mu.Lock()
		all, err := slices.Clone(f.all), f.err
		f.mu.Unlock()
		if err != nil {
			return err
		}
		if next < 0 {
			next = f.first(all, after)
		}
		for next < len(all) {
			next++
			if !visit(all[next-1]) {
				break
			}
		}
		return nil
	}
}

// first returns where reading begins: with what was not final before an update.
func (f *fakeHistory) first(all []*ledger.Publication, after ledger.Seq) int {
	with := slices.IndexFunc(all, func(p *ledger.Publication) bool { return p.Head.Tip(ledger.Processed).Seq >= after })
	if with <= 0 {
		return 0
	}
	final := all[with-1].Head.Tip(ledger.Finalized).Version
	return slices.IndexFunc(all, func(p *ledger.Publication) bool { return p.Head.Tip(ledger.Processed).Version > final })
}

// Who was promised what the log then does not give is not left with a hole.
func TestALogThatFailsEndsTheConnection(t *testing.T) {
	for name, spoil := range map[string]func(*fakeHistory){
		"it cannot be read":           func(f *fakeHistory) { f.err = errors.New("a fault") },
		"it ends before what is kept": func(f *fakeHistory) { f.all = f.all[:2] },
	} {
		log := &fakeHistory{}
		logger, text := newLog()
		inMemory(t, func(c *Config) { c.History, c.RecentBytes, c.Logger = log, 1, logger }, func(n *node) {
			n.script.blocks(5)
			spoil(log)
			c := n.dial("?resume_from=1")
			c.expect(resumed("null", 1))
			c.endsWith(websocket.CloseInternalServerErr, endInternal.text)
			ledgertest.Equal(n, text.Len() > 0, true, "%s: whether something was logged", name)
		})
	}
}

// A node that comes back keeps what follows the snapshot it began with. Of the frames that carry the very number before that the log tells:
// whoever was cut off between an update and the end of its block is told that end.
func TestTheEndOfABlockBeforeARestartIsTold(t *testing.T) {
	log := &fakeHistory{}
	inMemory(t, func(c *Config) { c.History = log }, func(n *node) {
		n.script.hub = New(Config{Ledger: n.ledger})
		n.script.blocks(2)
		n.script.hub = n.hub // restarted
		n.script.hub.Publish(&ledger.Publication{Head: log.all[1].Head})
		want := []string{resumed("null", 2), slotEnd(2, 2)}
		n.dial("?extended=true&resume_from=2").expect(want...)
		n.script.block(3, account(1, 3, programA))
		want = append(want, extendedFrame(account(1, 3, programA), 3, 3, "processed"), slotEnd(3, 3))
		n.dial("?extended=true&resume_from=2").expect(want...)
	})
}

// slowHistory counts how often it is read, by whom, and waits before it answers.
type slowHistory struct {
	*fakeHistory
	gate chan struct{} // a token lets one read go on

	mu    sync.Mutex
	reads []ledger.Seq // after which
}

func (f *slowHistory) Past(after ledger.Seq) func(context.Context, func(*ledger.Publication) bool) error {
	read := f.fakeHistory.Past(after)
	return func(ctx context.Context, visit func(*ledger.Publication) bool) error {
		f.mu.Lock()
		f.reads = append(f.reads, after)
		f.mu.Unlock()
		select {
		case <-f.gate:
			return read(ctx, visit)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (f *slowHistory) readAfter() []ledger.Seq {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.reads)
}

// withSlowHistory runs a test with a node whose log of some blocks is read one by one.
func withSlowHistory(t *testing.T, blocks ledger.Slot, test func(*node, *slowHistory)) {
	log := &slowHistory{fakeHistory: &fakeHistory{}}
	inMemory(t, func(c *Config) { c.History, c.RecentBytes = log, 1 }, func(n *node) {
		log.gate = make(chan struct{})
		n.hub.pastBytes = 1
		n.script.blocks(blocks)
		test(n, log)
	})
}

// A reading of the log ends with the connection that it is for, and a stop does not wait for those
// that wait for their turn.
func TestReadingTheLogIsCancelled(t *testing.T) {
	withSlowHistory(t, 5, func(n *node, log *slowHistory) {
		var clients sync.WaitGroup
		for range 10 {
			c := n.dial("?resume_from=1")
			c.expect(resumed("null", 1))
			clients.Go(func() { c.endsWith(websocket.CloseGoingAway, endShutdown.text) })
		}
		synctest.Wait()
		must(n, n.hub.Shutdown(n.Context())) // nobody lets the reading go on
		clients.Wait()
		ledgertest.Equal(n, len(log.readAfter()), 1, "readings of the log")
	})
}

// What was read from the log is in memory for one client alone, and counts until it is written.
func TestWhatIsReadFromTheLogCounts(t *testing.T) {
	log := &fakeHistory{}
	inMemory(t, func(c *Config) { c.History, c.RecentBytes = log, 1 }, func(n *node) {
		n.script.block(1, accounts(0, 2000, 1)...)
		n.script.block(2, account(1, 2, programA))
		c := n.dial("?mode=none")
		c.send(`{"type":"subscribe"}`)
		c.send(`{"type":"resume","from_seq":0}`)
		c.expect(subscribed("null", 0, 0, 2, 2001), resumed("null", 0))
		synctest.Wait() // it reads no more
		if got := n.hub.memory.Used(); got < 2000*updateBytes || got > 3000*updateBytes {
			n.Errorf("%d bytes are counted, want those of 2,000 updates", got)
		}
		c.settle()
		synctest.Wait()
		ledgertest.Equal(n, n.hub.memory.Used(), 0, "bytes that are still counted")
	})
}

// Who waits for its turn at the log is told each second that the connection lives, and how far it has come; and it is pinged.
func TestWhoWaitsForTheLogIsKeptAwake(t *testing.T) {
	for query, want := range map[string]int{"?resume_from=2": 0, "?extended=true&resume_from=2": 49} {
		withSlowHistory(t, 5, func(n *node, log *slowHistory) {
			c := n.dial(query)
			c.expect(resumed("null", 2))
			time.AfterFunc(49500*time.Millisecond, func() { close(log.gate) }) // before the client counts as gone, which says nothing
			beats, pings := 0, 0
			for {
				op, text, err := c.read()
				must(n, err)
				if op == websocket.PingMessage {
					pings++
					continue
				}
				told := parse(n, text)
				if told.Type != "heartbeat" {
					break // it goes on, as other tests say
				}
				if beats++; told.Seq != 2 || told.Slot != 5 {
					n.Fatalf("%s: told %s, want a heartbeat of seq 2", query, text)
				}
			}
			ledgertest.Equal(n, []int{beats, pings}, []int{want, 2}, "%s: heartbeats and pings", query)
		})
	}
}

// F40: clients read the log in turns, however many connections each has, and each goes on where it was.
func TestClientsReadTheLogInTurns(t *testing.T) {
	withSlowHistory(t, 9, func(n *node, log *slowHistory) {
		for range 10 {
			c := n.dial("?resume_from=2")
			c.expect(resumed("null", 2))
			go func() { _, _ = io.Copy(io.Discard, c.r) }()
		}
		synctest.Wait()
		n.client.Key = netip.MustParseAddr("192.0.2.2")
		other := n.dial("?resume_from=3")
		other.expect(resumed("null", 3))
		var told, want []string
		for slot := ledger.Slot(4); slot <= 9; slot++ {
			want = append(want, basicFrame(account(1, ledger.Lamports(slot), programA), slot))
		}
		var reading sync.WaitGroup
		reading.Go(func() {
			for range want {
				told = append(told, other.next())
			}
		})
		ours := func() (count int) {
			for _, after := range log.readAfter() {
				count += int(after) - 2
			}
			return count
		}
		for ours() < 6 {
			synctest.Wait() // both clients stand in line
			log.gate <- struct{}{}
			synctest.Wait()
		}
		if reads := log.readAfter(); len(reads) > 13 {
			n.Errorf("%d readings until the sixth of one client, want one of the others between two: %v", len(reads), reads)
		}
		close(log.gate)
		reading.Wait()
		ledgertest.Equal(n, told, want, "what the other was told")
		other.quiet()
	})
}
