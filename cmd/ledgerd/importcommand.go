package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"ledgerd/engine"
	"ledgerd/engine/datadir"
	"ledgerd/engine/importer"
	"ledgerd/engine/importer/agave"
	"ledgerd/engine/ledger"
	"ledgerd/snapshot/vfs"
)

// importCommand fills a new data directory from an archive.
type importCommand struct {
	Archive string `help:"Snapshot archive of an Agave validator, as snapshot-SLOT-HASH.tar.zst." required:"" placeholder:"FILE"`
	DataDir string `help:"Directory that is to belong to the node: empty, or not there yet." default:"./data"`
	filterFlags
}

// filterFlags say which accounts a node holds.
type filterFlags struct {
	IndexOwners   keys `help:"Hold the accounts of these programs alone, and those of --index-accounts. An account once held is followed on." placeholder:"PROGRAM,…"`
	IndexAccounts keys `help:"Hold these accounts alone, and those of --index-owners." placeholder:"KEY,…"`
}

func (f *filterFlags) filter() *ledger.Filter {
	return ledger.NewFilter(f.IndexOwners, f.IndexAccounts)
}

// keys is a list of public keys, comma-separated, that is not empty.
type keys []ledger.Pubkey

// UnmarshalText parses "KEY,KEY".
func (k *keys) UnmarshalText(b []byte) (err error) {
	if len(b) == 0 { // such as an unset variable of a script: it is not meant to be all
		return errors.New("expected public keys, separated by commas; leave the flag out to hold all accounts")
	}
	*k, err = ledger.SplitKeys(string(b))
	return err
}

// Validate checks what the flags' types cannot.
func (c *importCommand) Validate() error {
	if c.DataDir == "" {
		return errors.New("--data-dir must name a directory")
	}
	return nil
}

// Run imports. The archive is looked at before the directory is touched.
func (c *importCommand) Run(ctx context.Context, s *streams) error {
	archive, err := agave.Open(c.Archive)
	if err != nil {
		return &usageError{err}
	}
	dir, anew, err := datadir.OpenForImport(vfs.Disk{}, c.DataDir)
	if err != nil {
		return err
	}
	defer dir.Close()
	if anew {
		fmt.Fprintf(s.err, "an import into %s did not finish: what it left is removed, and it starts anew\n", c.DataDir)
	}
	log := slog.New(slog.NewTextHandler(s.err, &slog.HandlerOptions{Level: slog.LevelWarn}))
	into, err := importer.New(importer.Config{Dir: dir, Filter: c.filter(), Logger: log})
	if err != nil {
		return fmt.Errorf("cannot import %s: %w", c.Archive, err)
	}
	begun := time.Now()
	shown := showImport(s.err, func() importState { return importState{archive, into.Progress(), time.Since(begun)} })
	at, done, err := importArchive(ctx, archive, into)
	shown()
	if err != nil {
		if ctx.Err() != nil {
			err = errors.New("it was stopped")
		}
		into.Close()
		return fmt.Errorf("cannot import %s: %w; %s holds nothing yet, and the next import starts anew", c.Archive, err, c.DataDir)
	}
	fmt.Fprintf(s.err, "imported %d accounts and %d mints at slot %d in %v, state hash %s; ledgerd serve goes on from there\n",
		done.Accounts, done.Mints, at.Slot, time.Since(begun).Round(time.Second), done.StateHash)
	return nil
}

// importArchive reads an archive into an import, and finishes it.
func importArchive(ctx context.Context, archive *agave.Archive, into *importer.Import) (importer.Point, importer.Result, error) {
	at, err := archive.Read(ctx, into.Add)
	if err != nil {
		return at, importer.Result{}, err
	}
	done, err := into.Finish(ctx, at)
	return at, done, err
}

// importState is what there is to show of an import.
type importState struct {
	archive interface{ Progress() (read, size int64) }
	importer.Progress
	since time.Duration
}

// line tells how far the import is, in one line.
func (s importState) line() string {
	read, size := s.archive.Progress()
	switch s.Phase {
	case importer.Reads:
		seconds := max(s.since.Seconds(), 0.001)
		return fmt.Sprintf("%s of %s, %d records, %.0f records/s, %s/s", bytesText(float64(read)), bytesText(float64(size)),
			s.Added, float64(s.Added)/seconds, bytesText(float64(read)/seconds))
	case importer.Writes:
		return fmt.Sprintf("%d accounts are sorted and written", s.Sorted)
	default:
		return "what was written is checked"
	}
}

// percent returns how much of the phase is done. How many accounts there are is known at the end.
func (s importState) percent() int {
	read, size := s.archive.Progress()
	done, total := float64(read), float64(size)
	if s.Phase != importer.Reads {
		done, total = float64(s.Sorted), float64(s.Added)
	}
	if total == 0 {
		return 0
	}
	return int(min(100, 100*done/total))
}

func (s importState) name() string {
	return [...]string{"reading the archive", "writing accounts", "checking"}[s.Phase]
}

// bytesText writes a number of bytes for people.
func bytesText(n float64) string {
	for _, unit := range []string{"B", "KiB", "MiB"} {
		if n < 1024 {
			return fmt.Sprintf("%.1f %s", n, unit)
		}
		n /= 1024
	}
	return fmt.Sprintf("%.1f GiB", n)
}

// showImport tells how far an import is, as a bar where w is a terminal, else as a line now and then. The
// function it returns ends that, and waits until nothing more is written.
func showImport(w io.Writer, read func() importState) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	wait := showAgain(ctx, w, func(asBar bool) (over bool) {
		s := read()
		if asBar {
			drawBar(w, engine.Progress{Phase: s.name(), Done: uint64(s.percent()), Total: 100})
			fmt.Fprintf(w, " %s\x1b[K", s.line())
		} else {
			fmt.Fprintf(w, "%s: %s\n", s.name(), s.line())
		}
		return false
	})
	return func() { cancel(); wait() }
}
