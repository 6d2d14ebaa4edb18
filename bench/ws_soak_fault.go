package bench

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// soakFault is something that was wrong.
type soakFault struct {
	at   time.Time
	text string
}

const (
	maxFaults  = 10_000 // that are kept
	toldFaults = 20     // that are told in words
)

// fault notes that something was wrong.
func (s *soakRun) fault(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := soakFault{time.Now(), fmt.Sprintf(format, args...)}
	if len(s.faults) < maxFaults {
		s.faults = append(s.faults, f)
	}
	if len(s.faults) <= toldFaults {
		s.env.Say("soak, %s: fault: %s", f.at.Format(time.TimeOnly), f.text)
	}
}

// count returns how many faults there are.
func (s *soakRun) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.faults)
}

// judge tells the faults apart: those that came when this process had stood still say nothing
// of the server, which gives up who does not read. Some are told in words, those of the server
// first.
func (s *soakRun) judge() (wrong, disturbed int, told []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var words [2][]string
	for _, f := range s.faults {
		if s.watch.stoodStill(f.at) {
			disturbed++
			words[1] = append(words[1], f.text+" (the load itself had stood still)")
		} else {
			wrong++
			words[0] = append(words[0], f.text)
		}
	}
	told = append(words[0], words[1]...)
	return wrong, disturbed, told[:min(len(told), toldFaults)]
}

// stutter watches whether this process is run when it wants to be.
type stutter struct {
	mu    sync.Mutex
	late  time.Duration // the longest since it was asked
	halts []time.Time   // when it had stood still for longer than a halt
}

const (
	stutterBeat = 100 * time.Millisecond
	// stutterHalt is how long this process stands still before sockets are said to have suffered.
	stutterHalt = time.Second
	// stutterAfter is how long what it missed may be felt: a client that the server gave up
	// learns so when it reads on.
	stutterAfter = 15 * time.Second
)

// run watches until ctx ends.
func (s *stutter) run(ctx context.Context) {
	for last := time.Now(); pause(ctx, stutterBeat); {
		now := time.Now()
		late := now.Sub(last) - stutterBeat
		last = now
		s.mu.Lock()
		s.late = max(s.late, late)
		if late > stutterHalt {
			s.halts = append(s.halts, now)
		}
		s.mu.Unlock()
	}
}

// longest returns for how long the process stood still at most since it was asked last.
func (s *stutter) longest() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	late := s.late
	s.late = 0
	return late
}

// stoodStill reports whether something at a moment may come from standing still: before it, or
// noticed just after it by a goroutine that was run a little later.
func (s *stutter) stoodStill(at time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, halt := range s.halts {
		if d := at.Sub(halt); d > -stutterHalt && d < stutterAfter {
			return true
		}
	}
	return false
}
