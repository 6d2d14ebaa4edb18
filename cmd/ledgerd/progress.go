package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"ledgerd/cmd/internal/units"
	"ledgerd/engine"
)

const (
	barEvery  = 100 * time.Millisecond
	lineEvery = 2 * time.Second
	barWidth  = 15
)

// showProgress tells how far a work is, until read says that it is over, or ctx ends: as a bar where w is a terminal, which is wiped
// away in the end, else by say now and then. The function it returns waits until nothing more is written.
func showProgress(ctx context.Context, w io.Writer, read func() (p engine.Progress, over bool), say func(engine.Progress, speed)) (wait func()) {
	asBar, every := isTerminal(w), lineEvery
	if asBar {
		every = barEvery
		say = func(p engine.Progress, s speed) { drawBar(w, p, s) }
	}
	var speed speed
	p, _ := read()
	speed.note(p, time.Now())
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
			p, over := read()
			if over {
				return
			}
			if speed.note(p, time.Now()); p.Phase != "" { // else it has not begun
				say(p, speed)
			}
		}
	}()
	return func() { <-done }
}

// inLog says in the log how far a work is.
func inLog(log *slog.Logger) func(engine.Progress, speed) {
	return func(p engine.Progress, s speed) {
		said := []any{"percent", p.Percent()}
		if s.perSecond > 0 {
			said = append(said, "rate", s.rate(p))
		}
		if s.left > 0 {
			said = append(said, "left", s.left)
		}
		log.Info(p.Phase, said...)
	}
}

func drawBar(w io.Writer, p engine.Progress, s speed) {
	full := barWidth * p.Percent() / 100
	fmt.Fprintf(w, "\r%-20s [%s%s] %3d %%%s\x1b[K", p.Phase, strings.Repeat("=", full), strings.Repeat(" ", barWidth-full), p.Percent(), s.text(p))
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// speed is how fast a phase of a work goes, and how long it will still take.
type speed struct {
	phase     string
	begun     time.Time
	from      uint64 // what was done then
	perSecond float64
	left      time.Duration // 0: not known
}

// note takes over how far the work is now.
func (s *speed) note(p engine.Progress, now time.Time) {
	if p.Phase != s.phase || p.Done < s.from {
		*s = speed{phase: p.Phase, begun: now, from: p.Done}
	}
	s.perSecond, s.left = 0, 0
	if took := now.Sub(s.begun); took > 0 {
		s.perSecond = float64(p.Done-s.from) / took.Seconds()
	}
	if s.perSecond > 0 && p.Total > p.Done {
		s.left = time.Duration(float64(p.Total-p.Done) / s.perSecond * float64(time.Second)).Round(time.Second)
	}
}

// rate writes the speed in the unit of the work.
func (s *speed) rate(p engine.Progress) string {
	if p.Unit == "" {
		return units.Bytes(s.perSecond) + "/s"
	}
	return fmt.Sprintf("%.0f %s/s", s.perSecond, p.Unit)
}

// text writes the speed for people, to stand after how far the work is.
func (s *speed) text(p engine.Progress) (text string) {
	if s.perSecond > 0 {
		text = ", " + s.rate(p)
	}
	if s.left > 0 {
		text += fmt.Sprintf(", %v left", s.left)
	}
	return text
}

// meter counts what a tool has done of a phase of its work.
type meter struct {
	phase, unit string // "": bytes
	total       uint64 // 0: not known
	done        atomic.Uint64
}

// begin has the meter count anew, up to a total.
func (m *meter) begin(total uint64) {
	m.total = total
	m.done.Store(0)
}

func (m *meter) progress() engine.Progress {
	return engine.Progress{Phase: m.phase, Done: m.done.Load(), Total: m.total, Unit: m.unit}
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
	wait := showProgress(ctx, s.err, func() (engine.Progress, bool) { return read(), false }, func(p engine.Progress, v speed) {
		fmt.Fprintf(s.err, "%s: %d %%%s\n", p.Phase, p.Percent(), v.text(p))
	})
	return func() { cancel(); wait() }
}
