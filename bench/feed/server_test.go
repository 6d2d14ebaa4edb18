package feed_test

import (
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"ledgerd/bench/feed"
	"ledgerd/bench/proc"
	"ledgerd/bench/wsclient"
	"ledgerd/engine/ledger"
)

// listener subscribes to everything, and folds until it has heard of the end of a slot.
type listener struct {
	*testing.T
	conn  *wsclient.Conn
	state wsclient.State
}

func listen(t *testing.T, s *proc.Server, query string) *listener {
	t.Helper()
	conn, err := wsclient.Dial(t.Context(), s.StreamURL()+query, wsclient.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	l := &listener{T: t, conn: conn}
	// The answer says that the server knows the subscriber.
	if err := conn.WriteText([]byte(`{"type":"ping","id":1}`)); err != nil {
		t.Fatal(err)
	}
	for l.state.Frames == 0 {
		l.next()
	}
	return l
}

func (l *listener) next() {
	l.Helper()
	if err := l.conn.NetConn().SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
		l.Fatal(err)
	}
	f, err := l.conn.Next()
	if err == nil {
		err = l.state.Apply(f.Payload)
	}
	if err != nil {
		l.Fatal(err)
	}
}

func (l *listener) until(slot ledger.Slot) *wsclient.State {
	l.Helper()
	for l.state.Ended < uint64(slot) {
		l.next()
	}
	return &l.state
}

// A server that reads the feed holds the ledger, says every update, and goes on with the same
// feed after a crash.
func TestServerReadsTheFeed(t *testing.T) {
	program, err := proc.Build(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	c := feed.Config{Accounts: 1000, Updates: 300, Finality: 4}
	o := proc.Options{DataDir: t.TempDir()}
	s, err := proc.Start(t.Context(), program, nil, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Kill() })
	f, err := feed.New(s.Feed(), c)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	l := listen(t, s, "?extended=true")
	l.state.Whole = true
	write := func() {
		for range 10 {
			if _, err := f.Block(); err != nil {
				t.Fatal(err)
			}
		}
	}
	write()
	check(t, l.until(f.Newest()), c, 10, f.Newest())

	s.Kill()
	if _, err := f.Block(); !errors.Is(err, os.ErrClosed) {
		t.Fatalf("writing to a server that is gone: %v", err)
	}
	if s, err = proc.Start(t.Context(), program, nil, o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Kill)
	if err := f.Continue(s.Feed()); err != nil {
		t.Fatal(err)
	}
	if err := s.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	again := listen(t, s, fmt.Sprintf("?extended=true&resume_from=%d", l.state.Seq))
	before := again.state.Frames
	l.conn, l.state.Frames = again.conn, l.state.Frames+before
	write()
	check(t, l.until(f.Newest()), c, 20, f.Newest()) // not the one that found nobody
}

func check(t *testing.T, got *wsclient.State, c feed.Config, blocks int, newest ledger.Slot) {
	t.Helper()
	if got.Updates != blocks*c.Updates || got.Missing != 0 || got.Repeated != 0 || got.Rollbacks != 0 {
		t.Errorf("after %d blocks of %d updates: %d updates, %d missing, %d repeated, %d rollbacks",
			blocks, c.Updates, got.Updates, got.Missing, got.Repeated, got.Rollbacks)
	}
	for i := range c.Accounts {
		s := newest
		for !c.Has(s, i) && s > feed.FirstSlot {
			s--
		}
		if a := got.Accounts[feed.Key(i).String()]; s > feed.FirstSlot && (a.Lamports != uint64(s) || a.Owner != feed.Program(i).String()) {
			t.Errorf("account %d is %+v, want that of slot %d", i, a, s)
		}
	}
}
