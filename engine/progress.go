package engine

import "ledgerd/engine/ledger"

// Progress is how far a recovery is, or another long work.
type Progress struct {
	Phase       string // "" before recovery begins and after it ended
	Done, Total uint64
}

// progress is a Progress that one goroutine updates and any goroutine reads.
type progress struct{ ledger.Guarded[Progress] }

func (p *progress) begin(phase string, total uint64) {
	p.Update(func(now *Progress) { *now = Progress{Phase: phase, Total: total} })
}

func (p *progress) set(done, total uint64) {
	p.Update(func(now *Progress) { now.Done, now.Total = done, total })
}

// Percent returns how much of the phase is done, 0 if Total is not known.
func (p Progress) Percent() int {
	if p.Total == 0 {
		return 0
	}
	return int(min(100, 100*float64(p.Done)/float64(p.Total)))
}
