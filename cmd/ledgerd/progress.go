package main

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"ledgerd/engine"
)

// progressEvery is how often it is told how far a work is.
const progressEvery = 2 * time.Second

// showProgress has say tell now and then how far a work is, until read says that it is over, or ctx ends. The function it returns waits until
// nothing more is said.
func showProgress(ctx context.Context, read func() (p engine.Progress, over bool), say func(engine.Progress)) (wait func()) {
	var telling sync.WaitGroup
	telling.Go(func() {
		ticker := time.NewTicker(progressEvery)
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
			if p.Phase != "" { // else it has not begun
				say(p)
			}
		}
	})
	return telling.Wait
}

// meter counts what a tool has done of a phase of its work.
type meter struct {
	phase string
	total uint64 // 0: not known
	done  atomic.Uint64
}

func (m *meter) progress() engine.Progress {
	return engine.Progress{Phase: m.phase, Done: m.done.Load(), Total: m.total}
}

// Write counts bytes.
func (m *meter) Write(p []byte) (int, error) {
	m.done.Add(uint64(len(p)))
	return len(p), nil
}

// quietFlag is for tools that take long.
type quietFlag struct {
	Quiet bool `short:"q" help:"Say nothing of how far the work is."`
}

// show tells how far the work of a tool is, unless that is not wanted. The function it returns ends that.
func (q quietFlag) show(s *streams, read func() engine.Progress) (stop func()) {
	if q.Quiet {
		return func() {}
	}
	ctx, cancel := context.WithCancel(context.Background())
	wait := showProgress(ctx, func() (engine.Progress, bool) { return read(), false }, func(p engine.Progress) {
		fmt.Fprintf(s.err, "%s: %d %%\n", p.Phase, p.Percent())
	})
	return func() { cancel(); wait() }
}
