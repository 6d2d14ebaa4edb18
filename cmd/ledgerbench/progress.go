package main

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"
)

// progress writes what a run says of itself, a line a step. On a terminal the last line tells what
// is done just now, and for how long.
type progress struct {
	out      io.Writer
	terminal bool
	ticking  sync.WaitGroup
	over     chan struct{} // closed by end

	mu    sync.Mutex
	now   string // "": nothing is done
	began time.Time
}

// Codes of a terminal: to the beginning of the line, and what stands there is gone.
const clearLine = "\r\x1b[K"

// newProgress writes to out; end ends it.
func newProgress(out io.Writer) *progress {
	p := &progress{out: out, over: make(chan struct{})}
	if file, ok := out.(*os.File); ok {
		info, err := file.Stat()
		p.terminal = err == nil && info.Mode()&os.ModeCharDevice != 0 && os.Getenv("TERM") != "dumb"
	}
	if p.terminal {
		p.ticking.Go(p.tick)
	}
	return p
}

func (p *progress) tick() {
	ticks := time.NewTicker(time.Second)
	defer ticks.Stop()
	for {
		select {
		case <-ticks.C:
			p.mu.Lock()
			p.draw()
			p.mu.Unlock()
		case <-p.over:
			return
		}
	}
}

// begin says what is done from now on.
func (p *progress) begin(what string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.now, p.began = what, time.Now()
	p.draw()
}

// Write writes lines above the one that tells what is done.
func (p *progress) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.terminal && p.now != "" {
		_, _ = io.WriteString(p.out, clearLine) // an error shows at what follows
	}
	n, err := p.out.Write(b)
	p.draw()
	return n, err
}

// draw writes the line that tells what is done.
func (p *progress) draw() {
	if p.terminal && p.now != "" {
		_, _ = fmt.Fprintf(p.out, "%s%s, %s", clearLine, p.now, time.Since(p.began).Round(time.Second))
	}
}

// end takes the line away.
func (p *progress) end() {
	close(p.over)
	p.ticking.Wait()
	if p.terminal && p.now != "" {
		_, _ = io.WriteString(p.out, clearLine)
	}
}
