package feed_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"testing"
	"time"

	"ledgerd/bench/feed"
	"ledgerd/bench/listen"
	"ledgerd/bench/proc"
	"ledgerd/bench/proc/proctest"
	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/ledgertest"
)

var must = ledgertest.Must

// A server that reads the feed holds the ledger and sends every update once.
func TestServerReadsTheFeed(t *testing.T) {
	t.Parallel()
	program, err := proctest.Tool("", "ledgerd")
	must(t, err)
	s, err := proc.Start(t.Context(), program, nil, proc.Options{Dir: t.TempDir()})
	must(t, err)
	t.Cleanup(s.Kill)
	f, err := feed.New(s.Feed(), feed.Config{Accounts: 1000, Updates: 300, Finality: 4})
	must(t, errors.Join(err, s.Ready(t.Context())))
	const sockets, blocks = 2, 10
	pool, err := listen.OpenAll(t.Context(), listen.Config{Sockets: sockets, URL: s.StreamURL(), CheckNumbers: true})
	must(t, err)
	defer pool.Close()
	for range blocks {
		_, err := f.Block()
		must(t, err)
	}
	want := int64(sockets * blocks * f.Config().Updates)
	for late := time.Now().Add(time.Minute); pool.Counts().Updates < want && time.Now().Before(late); {
		time.Sleep(time.Millisecond)
	}
	pool.Close()
	if n := pool.Counts(); n.Updates != want || n.Missing != 0 || n.Twice != 0 {
		t.Errorf("after %d blocks of %d updates: %+v", blocks, f.Config().Updates, n)
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
