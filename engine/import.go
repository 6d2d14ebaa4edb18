package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"sync/atomic"

	"ledgerd/engine/gather"
	"ledgerd/engine/ledger"
	"ledgerd/snapshot/vfs"
	"ledgerd/snapshot/wal"
)

// importParts is how many goroutines sort at most; each takes memory of its own.
const importParts = 4

// ImportConfig is what an import needs.
type ImportConfig struct {
	Dir    *Dir           // from OpenDirForImport
	Filter *ledger.Filter // which accounts are held; nil: all
	Logger *slog.Logger   // nil: slog.Default
	// MemoryBytes bounds the rows that each of up to four goroutines holds; 0: 64 MiB. Besides there
	// are write buffers of 16 MiB for each and once more, and what the snapshot is compressed in.
	MemoryBytes int64
	// SegmentBytes is how large the segment of the log is whose room is taken first; 0: 64 MiB.
	SegmentBytes int64
}

// ImportPoint is where base state stands that is imported.
type ImportPoint struct {
	Slot       ledger.Slot
	ParentSlot ledger.Slot
	Blockhash  ledger.Hash
	Height     ledger.Opt[uint64]
	// Capitalization is what all accounts of the ledger hold together, those that the filter leaves
	// out included. Where it is known, accounts that hold another sum are refused.
	Capitalization ledger.Opt[ledger.Lamports]
}

// Import makes a data directory of the accounts of a whole ledger, each of which may be told of several
// times in any order. It needs no memory for them: they are sorted on disk, by package gather, and
// go from there into a snapshot from which a node starts.
//
// Add is for one goroutine, and Finish comes after it; the rest may be called by any. Until Finish
// returns nil the directory is refused by everybody but another import.
type Import struct {
	c      ImportConfig
	log    *wal.Log // its room is taken; nil once the record is in it
	rows   *gather.Gathering
	mints  []*gather.Gathering
	row    gather.Row
	added  atomic.Uint64
	sorted atomic.Uint64
	phase  atomic.Uint32
}

// ImportPhase says what an import does.
type ImportPhase uint32

const (
	ImportReads  ImportPhase = iota // accounts are added
	ImportWrites                    // they are sorted and written
	ImportChecks                    // what was written is read back
)

// ImportProgress says how far an import is.
type ImportProgress struct {
	Phase  ImportPhase
	Added  uint64 // account records
	Sorted uint64 // accounts that were found the newest
}

// Imported is what an import led to.
type Imported struct {
	Accounts, Mints uint64
	Bytes           int64 // of the snapshot
	StateHash       ledger.StateHash
}

// NewImport begins an import into a directory. The log takes its room now: that it is not there is better
// known at the beginning.
func NewImport(c ImportConfig) (*Import, error) {
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
	err := d.noteImport(importNote{}, i.c.Filter)
	if err != nil {
		return err
	}
	if i.rows, err = i.gather("accounts"); err != nil {
		return err
	}
	i.log, err = wal.Open(wal.Config{FS: d.fs, Dir: LogDir(d.path), SegmentBytes: i.c.SegmentBytes, Logger: i.c.Logger}, wal.End{})
	if err != nil {
		return fmt.Errorf("cannot begin the log: %w", err)
	}
	return nil
}

func (i *Import) gather(of string) (*gather.Gathering, error) {
	d := i.c.Dir
	return gather.New(gather.Config{FS: d.fs, Dir: d.gatherDir(of), MemoryBytes: i.c.MemoryBytes})
}

// Progress says how far the import is.
func (i *Import) Progress() ImportProgress {
	return ImportProgress{ImportPhase(i.phase.Load()), i.added.Load(), i.sorted.Load()}
}

// Add tells of an account as it stood after a write: whole, or closed with 0 lamports. Of several
// the one of the highest slot counts, of those the highest version, of those the last added.
func (i *Import) Add(slot ledger.Slot, version uint64, w *ledger.AccountWrite) error {
	r := &i.row
	r.Key, r.Slot, r.Version = w.Pubkey, slot, version
	r.Value = appendImportRow(r.Value[:0], w, i.c.Filter)
	if err := i.rows.Add(r); err != nil {
		return i.explain(err)
	}
	i.added.Add(1)
	return nil
}

// Close removes what the import needed on its way. The directory stays unfinished where Finish did
// not return nil.
func (i *Import) Close() error {
	d := i.c.Dir
	var err error
	if i.log != nil { // it is of no use to anybody
		err = errors.Join(i.log.Close(), gather.Clear(d.fs, LogDir(d.path)))
		i.log = nil
	}
	if i.rows != nil {
		err = errors.Join(err, i.rows.Close())
	}
	for _, m := range i.mints {
		err = errors.Join(err, m.Close())
	}
	_ = d.fs.Remove(d.gatherDir("accounts"))
	for n := range i.mints {
		_ = d.fs.Remove(d.gatherDir(fmt.Sprintf("mints-%d", n)))
	}
	return err
}

// explain says first that the disk is full where that is why something failed.
func (i *Import) explain(err error) error {
	if vfs.IsFull(err) {
		free, _ := i.c.Dir.fs.FreeBytes(i.c.Dir.path)
		return fmt.Errorf("the disk is full, %d bytes are free in %s: %w", free, i.c.Dir.path, err)
	}
	return err
}

// Finish writes what was added as the state at a point, and makes the directory one from which a node
// starts. Errors are one line.
func (i *Import) Finish(ctx context.Context, at ImportPoint) (Imported, error) {
	done, err := i.finish(ctx, at)
	if err != nil {
		return done, i.explain(err)
	}
	return done, nil
}

func (i *Import) finish(ctx context.Context, at ImportPoint) (done Imported, err error) {
	if err := i.rows.Finish(); err != nil {
		return done, err
	}
	i.phase.Store(uint32(ImportWrites))
	n := min(importParts, runtime.GOMAXPROCS(0))
	w := &importWriter{Import: i, ctx: ctx, at: at, left: n, mintsLeft: n}
	if done, err = w.write(); err != nil {
		return done, err
	}
	note := importNote{Slot: at.Slot, Blockhash: at.Blockhash.String(), Complete: i.c.Filter == nil, Finished: true}
	if err := i.Close(); err != nil {
		return done, err
	}
	return done, i.c.Dir.noteImport(note, i.c.Filter)
}
