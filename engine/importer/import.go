package importer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"sync/atomic"

	"ledgerd/engine/datadir"
	"ledgerd/engine/extsort"
	"ledgerd/engine/ledger"
	"ledgerd/snapshot/vfs"
	"ledgerd/snapshot/wal"
)

// maxParts bounds the goroutines that sort; each needs its own memory.
const maxParts = 4

// Config is what an import needs.
type Config struct {
	Dir    *datadir.Dir   // from datadir.OpenForImport
	Filter *ledger.Filter // which accounts are held; nil: all
	Logger *slog.Logger   // nil: slog.Default
	// MemoryBytes bounds the rows in memory of each of up to four goroutines; 0: 64 MiB. In addition there
	// are up to five write buffers of 16 MiB, and the buffers that compress the snapshot.
	MemoryBytes int64
	// SegmentBytes is the size of the log segment that New allocates; 0: 64 MiB.
	SegmentBytes int64
}

// Point is the slot of the imported state, and its block.
type Point struct {
	Slot       ledger.Slot
	ParentSlot ledger.Slot
	Blockhash  ledger.Hash
	Height     ledger.Opt[uint64]
	// Capitalization is the sum of the lamports of all accounts of the ledger, including those that the filter
	// excludes. If it is known, Finish fails for accounts with another sum.
	Capitalization ledger.Opt[ledger.Lamports]
}

// Import is a running import. Its memory does not grow with the number of accounts.
type Import struct {
	c      Config
	log    *wal.Log          // empty, with allocated space; nil after the record is written
	rows   *extsort.Sorter   // all added records
	mints  []*extsort.Sorter // the mint facts of each part
	row    extsort.Row       // scratch of Add
	added  atomic.Uint64
	sorted atomic.Uint64
	phase  atomic.Uint32
}

// Phase is what an import is doing.
type Phase uint32

const (
	Reads  Phase = iota // accounts are added
	Writes              // they are sorted and written
	Checks              // the snapshot is read back and checked
)

// Progress is how far an import is.
type Progress struct {
	Phase  Phase
	Added  uint64 // account records
	Sorted uint64 // accounts whose newest record was found
}

// Result is what an import wrote.
type Result struct {
	Accounts, Mints uint64
	Bytes           int64 // of the snapshot
	StateHash       ledger.StateHash
}

// New begins an import into a directory. It allocates the space of the log, so that a full disk does not make the
// import fail at its end, after hours.
func New(c Config) (*Import, error) {
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	i := &Import{c: c}
	if err := i.begin(); err != nil {
		i.Close()
		return nil, i.explain(err)
	}
	return i, nil
}

func (i *Import) begin() error {
	d := i.c.Dir
	err := d.SaveImport(datadir.ImportNote{}, i.c.Filter)
	if err != nil {
		return err
	}
	if i.rows, err = i.sorter("accounts"); err != nil {
		return err
	}
	i.log, err = wal.Open(wal.Config{FS: d.FS(), Dir: d.LogDir(), SegmentBytes: i.c.SegmentBytes, Logger: i.c.Logger}, wal.End{})
	if err != nil {
		return fmt.Errorf("cannot begin the log: %w", err)
	}
	return nil
}

// sorter returns a sorter that works in the directory's folder for rows of a kind.
func (i *Import) sorter(of string) (*extsort.Sorter, error) {
	d := i.c.Dir
	return extsort.New(extsort.Config{FS: d.FS(), Dir: d.ImportDir(of), MemoryBytes: i.c.MemoryBytes})
}

// Progress returns how far the import is. Any goroutine may call it.
func (i *Import) Progress() Progress {
	return Progress{Phase(i.phase.Load()), i.added.Load(), i.sorted.Load()}
}

// Add adds the record of an account after a write: with all fields, or with 0 lamports if it was closed. The record with
// the highest slot is the newest of an account, then the one with the highest version, then the one added last.
func (i *Import) Add(slot ledger.Slot, version uint64, w *ledger.AccountWrite) error {
	r := &i.row
	r.Key, r.Slot, r.Version = w.Pubkey, slot, version
	r.Value = appendRow(r.Value[:0], w, i.c.Filter)
	if err := i.rows.Add(r); err != nil {
		return i.explain(err)
	}
	i.added.Add(1)
	return nil
}

// Close removes temporary files. The directory stays unfinished unless Finish has
// returned nil.
func (i *Import) Close() error {
	d := i.c.Dir
	var err error
	if i.log != nil { // empty
		err = errors.Join(i.log.Close(), vfs.Clear(d.FS(), d.LogDir()))
		i.log = nil
	}
	if i.rows != nil {
		err = errors.Join(err, i.rows.Close())
	}
	for _, m := range i.mints {
		err = errors.Join(err, m.Close())
	}
	_ = d.FS().Remove(d.ImportDir("accounts"))
	for n := range i.mints {
		_ = d.FS().Remove(d.ImportDir(fmt.Sprintf("mints-%d", n)))
	}
	return err
}

// explain adds to an error caused by a full disk how much space is free.
func (i *Import) explain(err error) error {
	if vfs.IsFull(err) {
		free, _ := i.c.Dir.FS().FreeBytes(i.c.Dir.Path())
		return fmt.Errorf("the disk is full, %d bytes are free in %s: %w", free, i.c.Dir.Path(), err)
	}
	return err
}

// Finish writes the added accounts as the state at a point and marks the import as finished. A node can then start from
// the directory. Errors are one line.
func (i *Import) Finish(ctx context.Context, at Point) (Result, error) {
	done, err := i.finish(ctx, at)
	if err != nil {
		return done, i.explain(err)
	}
	return done, nil
}

func (i *Import) finish(ctx context.Context, at Point) (done Result, err error) {
	i.phase.Store(uint32(Writes))
	n := min(maxParts, runtime.GOMAXPROCS(0))
	w := &writer{Import: i, ctx: ctx, at: at, left: n, mintsLeft: n}
	if done, err = w.write(); err != nil {
		return done, err
	}
	note := datadir.ImportNote{Slot: at.Slot, Blockhash: at.Blockhash.String(), Complete: i.c.Filter == nil, Finished: true}
	if err := i.Close(); err != nil {
		return done, err
	}
	return done, i.c.Dir.SaveImport(note, i.c.Filter)
}
