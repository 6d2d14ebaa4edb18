package engine

import (
	"context"
	"fmt"
)

// joining is the phase in which Config.Join runs.
const joining = "joining the cluster"

// learnDir takes over what the data directory knows of the ledger.
func (e *Engine) learnDir() {
	c := &e.config
	if c.Dir != nil {
		e.seq.checkRoot, e.seq.statusSeen = c.Dir.checkRoot, c.Dir.statuses()
		if c.Filter == nil {
			c.Filter = c.Dir.Filter()
		}
		c.SkipVotes = c.SkipVotes || c.Dir.skipsVotes()
		e.seq.skipVotes = c.SkipVotes
		if c.Source == nil || c.Dir.imported() != nil && !e.info.GapsAllowed {
			e.info.Complete = c.Dir.complete()
		}
		e.info = c.Dir.infoOf(e.info)
	}
	e.showsAll = e.info.Complete
	if c.Filter != nil {
		e.info.Complete = false
		for _, s := range e.shards {
			s.SetFilter(c.Filter)
		}
	}
}

// join lets the data directory be bound and filled.
func (e *Engine) join(ctx context.Context) error {
	if e.config.Join == nil {
		return nil
	}
	if err := e.config.Join(ctx, e.progress.set); err != nil {
		return unlessEnded(ctx, fmt.Errorf("cannot join the cluster: %w", err))
	}
	if ctx.Err() != nil {
		return nil
	}
	e.learnDir()
	return nil
}
