package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"ledgerd/engine"
	"ledgerd/engine/ledger/bubbletest"
	"ledgerd/engine/ledger/ledgertest"
)

// reported is how far a recovery is.
type reported struct {
	engine.Progress
	over bool
}

func TestProgressIsToldUntilRecoveryIsOver(t *testing.T) {
	bubbletest.Test(t, func(t *testing.T) {
		var said bytes.Buffer
		var now atomic.Pointer[reported]
		now.Store(&reported{}) // it has not begun yet
		read := func() (engine.Progress, bool) { return now.Load().Progress, now.Load().over }
		say := func(p engine.Progress) { fmt.Fprintln(&said, p.Phase, p.Percent()) }
		wait := showProgress(t.Context(), read, say)
		time.Sleep(progressEvery + time.Second)
		now.Store(&reported{Progress: engine.Progress{Phase: "replaying the log", Done: 1 << 20, Total: 4 << 20}})
		time.Sleep(progressEvery)
		now.Store(&reported{over: true})
		wait() // it ends by itself
		ledgertest.Equal(t, said.String(), "replaying the log 25\n", "what is said")

		ctx, cancel := context.WithCancel(t.Context())
		now.Store(&reported{Progress: engine.Progress{Phase: "x"}})
		wait = showProgress(ctx, read, say)
		cancel()
		wait() // or with the node
	})
}

// A tool says in lines how far it is.
func TestToolsSayHowFarTheyAre(t *testing.T) {
	bubbletest.Test(t, func(t *testing.T) {
		var said bytes.Buffer
		m := &meter{phase: "reading", total: 40}
		stop := quietFlag{}.show(&streams{err: &said}, m.progress)
		_, _ = m.Write(make([]byte, 10))
		time.Sleep(progressEvery + time.Second)
		stop()
		ledgertest.Equal(t, said.String(), "reading: 25 %\n", "what is said")
	})
}

// A node that hangs before its backup or amid it is given up, and nothing is left of that.
func TestBackupGivesUpANodeThatHangs(t *testing.T) {
	t.Parallel()
	for _, sent := range []int{0, 100} {
		node := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if sent > 0 {
				w.Header().Set("Content-Length", "1024")
				_, _ = w.Write(make([]byte, sent)) // or the error tells
				_ = http.NewResponseController(w).Flush()
			}
			<-r.Context().Done()
		}))
		defer node.Close()
		dir := t.TempDir()
		c := &backupCommand{URL: node.URL, Output: filepath.Join(dir, "b"), silence: 200 * time.Millisecond}
		err := c.Run(t.Context(), &streams{io.Discard, io.Discard})
		left, err2 := os.ReadDir(dir)
		must(t, err2)
		if err == nil || !strings.Contains(err.Error(), "nothing came for 200ms") || len(left) > 0 {
			t.Errorf("after %d bytes: err = %v, and %v are left", sent, err, left)
		}
	}
}

// What is done with the bytes of a node takes as long as it takes.
func TestSilenceIsOfTheNodeAlone(t *testing.T) {
	bubbletest.Test(t, func(t *testing.T) {
		late := time.AfterFunc(time.Second, func() { t.Error("the node is given up") })
		a := &awaited{ReadCloser: io.NopCloser(strings.NewReader("ab")), late: late, silence: time.Second}
		for range 2 {
			_, err := a.Read(make([]byte, 1))
			must(t, err)
			time.Sleep(time.Minute)
		}
	})
}
