package main

import (
	"strings"
	"sync/atomic"
	"testing"

	"ledgerd/engine/ledger"
)

// A running node writes, begins and prunes segments while the log is read: none of that may
// be taken for damage.
func TestLogIsReadBesideItsWriter(t *testing.T) {
	t.Parallel()
	dir := newDataDir(t)
	log := writeLog(t, dir, toolCommits(), 4<<10)
	writeSnapshot(t, dir, 6, 1<<40, 1) // a node prunes behind its snapshots only
	var stop atomic.Bool
	written := make(chan error)
	newest := ledger.Version(6)
	go func() {
		template := toolCommits()[2][0]
		for v := newest + 1; !stop.Load(); v++ {
			r := *template
			r.Version, r.FirstSeq = v, ledger.Seq(2*v-8)
			if err := log.Commit([]*ledger.Record{&r}); err != nil {
				written <- err
				return
			}
			if v > 100 && v%20 == 0 {
				if err := log.Prune(v - 50); err != nil {
					written <- err
					return
				}
			}
		}
		written <- nil
	}()
	for range 150 {
		out, errors, code := tool(t, "log", "verify", "--data-dir", dir)
		if code != exitOK {
			t.Errorf("verify: exit %d, %s%s", code, out, errors)
			break
		}
		if out, errors, code := tool(t, "log", "dump", "--data-dir", dir); code != exitOK && !strings.Contains(errors, "records missing") {
			t.Errorf("dump: exit %d, %s%s", code, out, errors)
			break
		}
	}
	stop.Store(true)
	if err := <-written; err != nil {
		t.Fatal(err)
	}
}
