package main

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"ledgerd/engine"
	"ledgerd/engine/ledger/bubbletest"
)

// reported is how far a recovery is.
type reported struct {
	engine.Progress
	over bool
}

func TestProgressIsToldUntilRecoveryIsOver(t *testing.T) {
	bubbletest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		var now atomic.Pointer[reported]
		now.Store(&reported{}) // it has not begun yet
		read := func() (engine.Progress, bool) { return now.Load().Progress, now.Load().over }
		wait := showProgress(t.Context(), &bytes.Buffer{}, read, inLog(slog.New(slog.NewTextHandler(&log, nil))))
		time.Sleep(lineEvery + time.Second)
		now.Store(&reported{Progress: engine.Progress{Phase: "replaying the log", Done: 1 << 20, Total: 4 << 20}})
		time.Sleep(lineEvery)
		now.Store(&reported{over: true})
		wait() // it ends by itself
		if text := log.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, `msg="replaying the log" percent=25`) {
			t.Errorf("logged %q", text)
		}

		ctx, cancel := context.WithCancel(t.Context())
		now.Store(&reported{Progress: engine.Progress{Phase: "x"}})
		wait = showProgress(ctx, &bytes.Buffer{}, read, inLog(slog.New(slog.DiscardHandler)))
		cancel()
		wait() // or with the node
	})
}

func TestProgressSaysHowFastAndHowLong(t *testing.T) {
	var b bytes.Buffer
	var s speed
	now := time.Unix(0, 0)
	for _, tt := range []struct {
		after time.Duration
		p     engine.Progress
		want  string // behind the bar
	}{
		{0, engine.Progress{Phase: "replaying the log", Total: 40 << 20}, "  0 %"},
		{2 * time.Second, engine.Progress{Phase: "replaying the log", Done: 10 << 20, Total: 40 << 20}, " 25 %, 5.0 MiB/s, 6s left"},
		{3 * time.Second, engine.Progress{Phase: "x", Done: 30, Unit: "accounts"}, "  0 %"},                           // another work
		{5 * time.Second, engine.Progress{Phase: "x", Done: 50, Unit: "accounts"}, "  0 %, 10 accounts/s"},            // that ends nobody knows when
		{7 * time.Second, engine.Progress{Phase: "x", Done: 70, Total: 70, Unit: "accounts"}, "100 %, 10 accounts/s"}, // its end
		{8 * time.Second, engine.Progress{Phase: "x", Done: 20, Total: 70, Unit: "accounts"}, " 28 %"},                // again, from its beginning
		{9 * time.Second, engine.Progress{Phase: "x", Done: 70, Total: 9070, Unit: "accounts"}, "  0 %, 50 accounts/s, 3m0s left"},
	} {
		b.Reset()
		s.note(tt.p, now.Add(tt.after))
		drawBar(&b, tt.p, s)
		full := 15 * tt.p.Percent() / 100
		want := fmt.Sprintf("\r%-20s [%s%s] %s\x1b[K", tt.p.Phase, strings.Repeat("=", full), strings.Repeat(" ", 15-full), tt.want)
		if b.String() != want || len(want) > 4+80 {
			t.Errorf("drew %q, want %q, in a line", b.String(), want)
		}
	}
	if isTerminal(&b) {
		t.Error("a buffer is called a terminal")
	}
	f, err := os.CreateTemp(t.TempDir(), "")
	must(t, err)
	defer f.Close()
	if isTerminal(f) {
		t.Error("a file is called a terminal")
	}
}
