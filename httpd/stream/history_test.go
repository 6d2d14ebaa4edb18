package stream

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/fasthttp/websocket"

	"ledgerd/engine/ledger"
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
		n := serve(t, func(c *Config) { c.History, c.RecentBytes, c.Logger = log, 1, logger })
		n.script.history = log
		n.script.blocks(5)
		spoil(log)
		c := n.dial("?resume_from=1")
		c.expect(resumed("null", 1))
		c.endsWith(websocket.CloseInternalServerErr, endInternal.text)
		if text.Len() == 0 {
			t.Errorf("%s: nothing was logged", name)
		}
	}
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

// withSlowHistory returns a node whose log of some blocks is read one by one.
func withSlowHistory(t *testing.T, blocks ledger.Slot) (*node, *slowHistory) {
	log := &slowHistory{fakeHistory: &fakeHistory{}, gate: make(chan struct{})}
	n := serve(t, func(c *Config) { c.History, c.RecentBytes = log, 1 })
	n.script.history, n.hub.pastBytes = log.fakeHistory, 1
	n.script.blocks(blocks)
	return n, log
}

// A reading of the log ends with the connection that it is for, and a stop does not wait for those
// that wait for their turn.
func TestReadingTheLogIsCancelled(t *testing.T) {
	n, log := withSlowHistory(t, 5)
	var clients []*client
	for range 10 {
		c := n.dial("?resume_from=1")
		c.expect(resumed("null", 1))
		clients = append(clients, c)
	}
	eventually(t, "the log is read", func() bool { return len(log.readAfter()) == 1 })
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for _, c := range clients {
			c.endsWith(websocket.CloseGoingAway, endShutdown.text)
		}
	}()
	if err := n.hub.Shutdown(t.Context()); err != nil { // nobody lets the reading go on
		t.Errorf("Shutdown: %v", err)
	}
	<-ended
	if got := log.readAfter(); len(got) != 1 {
		t.Errorf("the log was read %d times, want once", len(got))
	}
}

// What was read from the log is in memory for one client alone, and counts until it is written.
func TestWhatIsReadFromTheLogCounts(t *testing.T) {
	log := &fakeHistory{}
	inMemory(t, func(c *Config) { c.History, c.RecentBytes = log, 1 }, func(n *node) {
		n.script.history = log
		n.script.block(1, accounts(0, 2000, 1)...)
		n.script.block(2, account(1, 2, programA))
		c := n.dial("?mode=none")
		c.send(`{"type":"subscribe"}`)
		c.send(`{"type":"resume","from_seq":0}`)
		c.expect(subscribed("null", 0, 0, 2, 2001), resumed("null", 0))
		synctest.Wait() // it reads no more
		if got := n.hub.memory.used.Load(); got < 2000*updateBytes || got > 3000*updateBytes {
			n.Errorf("%d bytes are counted, want those of 2,000 updates", got)
		}
		c.settle()
		synctest.Wait()
		if got := n.hub.memory.used.Load(); got != 0 {
			n.Errorf("%d bytes are still counted", got)
		}
	})
}

// Clients read the log in turns, however many connections each has, and each goes on where it was.
func TestClientsReadTheLogInTurns(t *testing.T) {
	n, log := withSlowHistory(t, 9)
	var busy []*client
	for range 10 {
		c := n.dial("?resume_from=2")
		c.expect(resumed("null", 2))
		busy = append(busy, c)
	}
	eventually(t, "the log is read", func() bool { return len(log.readAfter()) == 1 })
	n.client = netip.MustParseAddr("192.0.2.2")
	other := n.dial("?resume_from=3")
	other.expect(resumed("null", 3))
	standsInLine := func(client netip.Addr) bool {
		n.hub.seats.mu.Lock()
		defer n.hub.seats.mu.Unlock()
		turn := n.hub.seats.clients[client].turns.past
		if turn.TryAcquire(1) {
			turn.Release(1)
			return false
		}
		return true
	}
	ours := func() (count int) {
		for _, after := range log.readAfter() {
			count += int(after) - 2
		}
		return count
	}
	// Each reading is let go on only when both clients stand in line.
	reads := 1
	for ; ours() < 6; reads++ {
		eventually(t, "both stand in line", func() bool {
			return standsInLine(n.client) && standsInLine(netip.MustParseAddr("192.0.2.1")) && len(log.readAfter()) == reads
		})
		log.gate <- struct{}{}
	}
	if reads > 13 {
		t.Errorf("%d readings until the sixth of one client, want one of the others between two: %v", reads, log.readAfter())
	}
	close(log.gate)
	for slot := ledger.Slot(4); slot <= 9; slot++ {
		other.expect(basicFrame(account(1, ledger.Lamports(slot), programA), slot))
	}
	other.quiet()
	_ = other.conn.Close()
	for _, c := range busy {
		_ = c.conn.Close()
	}
	n.awaitEmpty()
}
