package engine

import (
	"context"
	"fmt"

	"ledgerd/engine/ledger"
)

// joining is the phase in which Config.Join runs.
const joining = "joining the cluster"

// known is what the source and the data directory say of the ledger. A known never changes: after Join the engine
// points to another one, while queries go on with the one before.
type known struct {
	info      ledger.SourceInfo // Complete: no account of the ledger is left out
	showsAll  bool              // the source, or what was imported, shows every account of the ledger
	filter    *ledger.Filter    // which of them are held; nil: all
	skipVotes bool
}

// learnDir takes over what the data directory knows of the ledger.
func (e *Engine) learnDir() {
	c, k := &e.config, *e.known.Load()
	if c.Dir != nil {
		e.seq.Bind(c.Dir.CheckRoot, c.Dir.Statuses(), c.Dir.SkipsVotes())
		if k.filter == nil {
			k.filter = c.Dir.Filter()
		}
		k.skipVotes = k.skipVotes || c.Dir.SkipsVotes()
		if c.Source == nil || c.Dir.Imported() != nil && !k.info.GapsAllowed {
			k.info.Complete = c.Dir.ShowsAll()
		}
		k.info = c.Dir.InfoOf(k.info)
	}
	k.showsAll = k.info.Complete
	if k.filter != nil {
		k.info.Complete = false
		for _, s := range e.shards {
			s.SetFilter(k.filter)
		}
	}
	e.known.Store(&k)
}

// join calls Config.Join, which binds and fills the data directory, and learns what it is bound to.
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
