package main

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"ledgerd/engine"
	"ledgerd/engine/ledger/bubble"
)

// phases is a recovery that goes on by itself.
type phases struct {
	mu   sync.Mutex
	now  engine.Progress
	over bool
}

func (p *phases) set(now engine.Progress, over bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.now, p.over = now, over
}

func (p *phases) read() (engine.Progress, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.now, p.over
}

func TestProgressIsToldUntilRecoveryIsOver(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		var p phases
		wait := showProgress(t.Context(), &bytes.Buffer{}, p.read, slog.New(slog.NewTextHandler(&log, nil)))
		time.Sleep(lineEvery + time.Second) // it has not begun yet
		p.set(engine.Progress{Phase: "replaying the log", Done: 1, Total: 4}, false)
		time.Sleep(lineEvery)
		p.set(engine.Progress{}, true)
		wait() // it ends by itself
		if text := log.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, `msg="replaying the log" percent=25`) {
			t.Errorf("logged %q", text)
		}
	})
}

func TestProgressEndsWithTheNode(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		wait := showProgress(ctx, &bytes.Buffer{}, func() (engine.Progress, bool) { return engine.Progress{Phase: "x"}, false }, slog.New(slog.DiscardHandler))
		cancel()
		wait()
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
