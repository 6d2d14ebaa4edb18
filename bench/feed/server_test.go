package feed_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"ledgerd/bench/feed"
	"ledgerd/bench/listen"
	"ledgerd/bench/proc"
	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/ledgertest"
)

var must = ledgertest.Must

// A server that reads the feed holds the ledger, sends every update once, and goes on with the same feed after a crash.
func TestServerReadsTheFeed(t *testing.T) {
	t.Parallel()
	program, err := proc.Build()
	must(t, err)
	o := proc.Options{DataDir: t.TempDir()}
	start := func(begin func(*proc.Server) error) *proc.Server {
		s, err := proc.Start(t.Context(), program, nil, o)
		must(t, err)
		t.Cleanup(s.Kill)
		must(t, errors.Join(begin(s), s.Ready(t.Context())))
		return s
	}
	var f *feed.Feed
	s := start(func(s *proc.Server) (err error) {
		f, err = feed.New(s.Feed(), feed.Config{Accounts: 1000, Updates: 300, Finality: 4})
		return err
	})
	const sockets, blocks = 2, 10
	pool, err := listen.OpenAll(t.Context(), listen.Config{Sockets: sockets, URL: s.StreamURL(), CheckNumbers: true, Reconnect: true})
	must(t, err)
	defer pool.Close()
	write := func(total int) {
		t.Helper()
		for range blocks {
			_, err := f.Block()
			must(t, err)
		}
		for late := time.Now().Add(time.Minute); pool.Counts().Updates < int64(sockets*total*f.Config().Updates) && time.Now().Before(late); {
			time.Sleep(time.Millisecond)
		}
	}
	write(blocks)
	s.Kill()
	_, err = f.Block()
	ledgertest.ErrorIs(t, err, os.ErrClosed, "writing to a server that is gone")
	o.Listen = strings.TrimSuffix(strings.TrimPrefix(s.URL(), "http://"), "/api") // where the subscribers come back
	s = start(func(s *proc.Server) error { return f.Continue(s.Feed()) })
	write(2 * blocks) // without the one that was not read
	pool.Close()
	if n := pool.Counts(); n.Updates != int64(sockets*2*blocks*f.Config().Updates) || n.Missing != 0 || n.Twice != 0 || n.Resumed != sockets {
		t.Errorf("after %d blocks of %d updates: %+v", 2*blocks, f.Config().Updates, n)
	}
	for i := range 200 { // more than the limits of any other client allow
		at := f.Newest()
		for !f.Config().Has(at, i) && at >= feed.FirstSlot {
			at--
		}
		_, body, err := proc.Get(t.Context(), http.DefaultClient, s.URL()+"/account/"+feed.Key(i).String())
		var got struct {
			Lamports ledger.Lamports
			Owner    string
		}
		if err := errors.Join(err, json.Unmarshal(body, &got)); err != nil || got.Lamports != ledger.Lamports(at) || got.Owner != feed.Program(i).String() {
			t.Errorf("account %d is %s (%v), want that of slot %d", i, body, err, at)
		}
	}
}
