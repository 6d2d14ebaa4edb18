package engine

import "sync"

// Progress is how far a recovery is.
type Progress struct {
	Phase       string // "" before recovery begins and after it ended
	Done, Total uint64 // in a unit of the phase
}

// progress is a Progress that one goroutine updates and any goroutine reads.
type progress struct {
	mu  sync.Mutex
	now Progress
}

func (p *progress) update(change func(*Progress)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change(&p.now)
}

func (p *progress) begin(phase string, total uint64) {
	p.update(func(now *Progress) { *now = Progress{Phase: phase, Total: total} })
}

func (p *progress) set(done, total uint64) {
	p.update(func(now *Progress) { now.Done, now.Total = done, total })
}

func (p *progress) read() (now Progress) {
	p.update(func(p *Progress) { now = *p })
	return now
}

// Percent returns how much of the phase is done, 0 if Total is not known.
func (p Progress) Percent() int {
	if p.Total == 0 {
		return 0
	}
	return int(min(100, 100*float64(p.Done)/float64(p.Total)))
}
