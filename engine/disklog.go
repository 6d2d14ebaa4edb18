package engine

import (
	"sync/atomic"

	"ledgerd/engine/ledger"
	"ledgerd/snapshot/wal"
)

// diskLog is the log in the data directory. It goes on at the first commit: a node that has nothing
// to write takes no space.
type diskLog struct {
	config wal.Config
	end    atomic.Pointer[wal.End] // where recovery found its end; nil before
	log    atomic.Pointer[wal.Log] // nil before the first commit
}

// settle makes durable what recovery found: a process that died may have left records that only
// the machine's memory holds, and nobody may see them before.
func (d *diskLog) settle(end wal.End) error {
	if err := wal.Settle(d.config, end); err != nil {
		return err
	}
	d.end.Store(&end)
	return nil
}

// Commit implements Log.
func (d *diskLog) Commit(records []*ledger.Record) error {
	l := d.log.Load()
	if l == nil {
		var err error
		if l, err = wal.Open(d.config, *d.end.Load()); err != nil {
			return err
		}
		d.log.Store(l)
	}
	return l.Commit(records)
}

// failed is closed when the log fails, be it between two commits; nil before the first.
func (d *diskLog) failed() <-chan struct{} {
	if d == nil || d.log.Load() == nil {
		return nil
	}
	return d.log.Load().Failed()
}

// err returns why the log failed.
func (d *diskLog) err() error { return d.log.Load().Err() }

// Sync makes durable whatever was committed.
func (d *diskLog) Sync() error {
	if l := d.log.Load(); l != nil {
		return l.Sync()
	}
	return nil
}

// Prune gives up records below a version, as far as whole segments go.
func (d *diskLog) Prune(below ledger.Version) error {
	if l := d.log.Load(); l != nil {
		return l.Prune(below)
	}
	return nil
}

// Close implements Log.
func (d *diskLog) Close() error {
	if l := d.log.Load(); l != nil {
		return l.Close()
	}
	return nil
}

// stats returns the log's figures. Before the first commit they say where it ends.
func (d *diskLog) stats() wal.Stats {
	if d == nil || d.end.Load() == nil {
		return wal.Stats{}
	}
	if l := d.log.Load(); l != nil {
		return l.Stats()
	}
	return d.end.Load().Stats()
}
