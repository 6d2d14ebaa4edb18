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
	return showAgain(ctx, w, func(asBar bool) (over bool) {
		p, over := read()
		switch {
		case over || p.Phase == "": // "": it has not begun
		case asBar:
			drawBar(w, p)
		default:
			log.Info(p.Phase, "percent", p.Percent())
		}
		return over
	})
}

// showAgain calls show again and again until that says it is over, or ctx ends: often where w is a
// terminal, for a bar that is wiped away in the end, else now and then. The function it returns waits until
// nothing more is written.
func showAgain(ctx context.Context, w io.Writer, show func(asBar bool) (over bool)) (wait func()) {
	asBar := isTerminal(w)
	every := lineEvery
	if asBar {
		every = barEvery
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if asBar {
			defer fmt.Fprint(w, "\r\x1b[K")
		}
		ticker := time.NewTicker(every)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
			case <-ctx.Done():
				return
			}
			if show(asBar) {
				return
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
