package main

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"ledgerd/engine"
	"ledgerd/engine/ledger/bubble"
)

// reported is how far a recovery is.
type reported struct {
	engine.Progress
	over bool
}

func TestProgressIsToldUntilRecoveryIsOver(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		var now atomic.Pointer[reported]
		now.Store(&reported{}) // it has not begun yet
		read := func() (engine.Progress, bool) { return now.Load().Progress, now.Load().over }
		wait := showProgress(t.Context(), &bytes.Buffer{}, read, slog.New(slog.NewTextHandler(&log, nil)))
		time.Sleep(lineEvery + time.Second)
		now.Store(&reported{Progress: engine.Progress{Phase: "replaying the log", Done: 1, Total: 4}})
		time.Sleep(lineEvery)
		now.Store(&reported{over: true})
		wait() // it ends by itself
		if text := log.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, `msg="replaying the log" percent=25`) {
			t.Errorf("logged %q", text)
		}

		ctx, cancel := context.WithCancel(t.Context())
		now.Store(&reported{Progress: engine.Progress{Phase: "x"}})
		wait = showProgress(ctx, &bytes.Buffer{}, read, slog.New(slog.DiscardHandler))
		cancel()
		wait() // or with the node
	})
}

func TestProgressBar(t *testing.T) {
	var b bytes.Buffer
	drawBar(&b, engine.Progress{Phase: "loading the snapshot", Done: 1, Total: 2})
	want := "\rloading the snapshot     [" + strings.Repeat("=", 20) + strings.Repeat(" ", 20) + "]  50 %"
	if b.String() != want {
		t.Errorf("drew %q, want %q", b.String(), want)
	}
	if isTerminal(&b) {
		t.Error("a buffer is called a terminal")
	}
	f, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if isTerminal(f) {
		t.Error("a file is called a terminal")
	}
}
