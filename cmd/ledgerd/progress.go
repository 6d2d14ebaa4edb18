package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"time"

	"ledgerd/engine"
)

const (
	barEvery  = 100 * time.Millisecond
	lineEvery = 2 * time.Second
	barWidth  = 40
)

// showProgress tells how far recovery is until read says that it is over, or ctx ends: as a bar
// where w is a terminal, else as lines of the log. The function it returns waits until nothing
// more is written.
func showProgress(ctx context.Context, w io.Writer, read func() (p engine.Progress, over bool), log *slog.Logger) (wait func()) {
	every, show := lineEvery, func(p engine.Progress) { log.Info(p.Phase, "percent", p.Percent()) }
	end := func() {}
	if isTerminal(w) {
		every, show = barEvery, func(p engine.Progress) { drawBar(w, p) }
		end = func() { fmt.Fprint(w, "\r\x1b[K") }
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer end()
		ticker := time.NewTicker(every)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
			case <-ctx.Done():
				return
			}
			p, over := read()
			if over {
				return
			}
			if p.Phase != "" { // it has begun
				show(p)
			}
		}
	}()
	return func() { <-done }
}

func drawBar(w io.Writer, p engine.Progress) {
	full := barWidth * p.Percent() / 100
	fmt.Fprintf(w, "\r%-24s [%s%s] %3d %%", p.Phase, strings.Repeat("=", full), strings.Repeat(" ", barWidth-full), p.Percent())
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
