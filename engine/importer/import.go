package importer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync/atomic"

	"ledgerd/engine/datadir"
	"ledgerd/engine/extsort"
	"ledgerd/engine/ledger"
	"ledgerd/snapshot/vfs"
	"ledgerd/snapshot/wal"
)

// Config is what an import needs.
type Config struct {
	Dir    *datadir.Dir   // from datadir.OpenForImport
	Filter *ledger.Filter // which accounts are held; nil: all
	// Data are the programs whose accounts are held with their data; nil: none.
	Data   *ledger.DataPrograms
	Logger *slog.Logger // nil: slog.Default
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
	// excludes. If it is known, Finish fails for accounts with another sum. It always fails for a sum of 2^64 or more.
	Capitalization ledger.Opt[ledger.Lamports]
}

// Import is a running import. Its memory does not grow with the number of accounts.
type Import struct {
	c      Config
	log    *wal.Log        // empty, with allocated space; nil after the record is written
	rows   *extsort.Sorter // all added records
	row    extsort.Row     // scratch of Add
	added  atomic.Uint64
	sorted atomic.Uint64
}

// Progress is how far an import is.
type Progress struct {
	Added  uint64 // account records
	Sorted uint64 // accounts whose newest record was found and written, 0 while records are added
}

// Result is what an import wrote.
type Result struct {
	Accounts, Mints uint64
	StateHash       ledger.StateHash
}

// New begins an import into a directory. It allocates the space of the log, so that a full disk does not make the
// import fail at its end, after hours.
func New(c Config) (*Import, error) {
	i, d := &Import{c: c}, c.Dir
	err := d.SaveImport(datadir.ImportNote{}, c.Filter, c.Data)
	if err == nil {
		i.rows, err = extsort.New(d.FS(), i.sortDir(), c.MemoryBytes)
	}
	if err == nil {
		i.log, err = wal.Create(wal.Config{FS: d.FS(), Dir: d.LogDir(), SegmentBytes: c.SegmentBytes, Logger: c.Logger}, firstVersion, 0)
	}
	if err != nil {
		i.Close()
		return nil, i.explain(fmt.Errorf("cannot begin: %w", err))
	}
	return i, nil
}

// sortDir returns the folder of the directory in which the records are sorted.
func (i *Import) sortDir() string { return filepath.Join(i.c.Dir.Path(), "import-accounts") }

// Progress returns how far the import is. Any goroutine may call it.
func (i *Import) Progress() Progress {
	return Progress{i.added.Load(), i.sorted.Load()}
}

// Add adds the record of an account after a write: with all fields, or with 0 lamports if it was closed. The record with
// the highest slot is the newest of an account, then the one with the highest version, then the one added last: records of the same
// slot and version are added in the order of their writes.
func (i *Import) Add(slot ledger.Slot, version uint64, w *ledger.AccountWrite) error {
	r := &i.row
	r.Key, r.Slot, r.Version = w.Pubkey, slot, version
	r.Value = appendValue(r.Value[:0], w, i.c.Filter, i.c.Data)
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
	_ = d.FS().Remove(i.sortDir())
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
	done, err := i.write(ctx, at)
	if err == nil {
		err = i.Close()
	}
	if err == nil {
		note := datadir.ImportNote{Slot: at.Slot, Blockhash: at.Blockhash.String(), Complete: i.c.Filter == nil, Finished: true}
		err = i.c.Dir.SaveImport(note, i.c.Filter, i.c.Data)
	}
	return done, i.explain(err)
}
