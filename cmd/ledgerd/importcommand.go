package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
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
	Archive     string `help:"Snapshot archive of an Agave validator, as snapshot-SLOT-HASH.tar.zst." required:"" placeholder:"FILE"`
	Incremental string `help:"Incremental snapshot archive of the changes since that one, as incremental-snapshot-SLOT-SLOT-HASH.tar.zst." placeholder:"FILE"`
	DataDir     string `help:"Directory that is to belong to the node: empty, or not there yet." default:"./data"`
	filterFlags
	quietFlag
}

// filterFlags say which accounts a node holds, and of which it holds the data.
type filterFlags struct {
	IndexOwners   keys `help:"Hold the accounts of these programs alone, and those of --index-accounts. An account once held is followed on." placeholder:"PROGRAM,…"`
	IndexAccounts keys `help:"Hold these accounts alone, and those of --index-owners." placeholder:"KEY,…"`

	Data dataPrograms `help:"Hold the data of accounts that these programs own: none, all or PROGRAM,…; other data needs another data directory." default:"none"`
}

func (f *filterFlags) filter() *ledger.Filter {
	return ledger.NewFilter(f.IndexOwners, f.IndexAccounts)
}

// dataPrograms are none, all, or a list of programs.
type dataPrograms struct{ *ledger.DataPrograms }

// UnmarshalText parses "none", "all" and "PROGRAM,PROGRAM".
func (p *dataPrograms) UnmarshalText(b []byte) (err error) {
	p.DataPrograms, err = ledger.ParseDataPrograms(string(b))
	return err
}

// keys is a list of public keys, comma-separated, that is not empty.
type keys []ledger.Pubkey

// errNoKeys refuses such as an unset variable of a script: it is not meant to be all.
var errNoKeys = errors.New("expected public keys, separated by commas; leave the flag out for all accounts")

// UnmarshalText parses "KEY,KEY".
func (k *keys) UnmarshalText(b []byte) (err error) {
	if len(b) == 0 {
		return errNoKeys
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
	archives, err := c.open()
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
	into, err := importer.New(importer.Config{Dir: dir, Filter: c.filter(), Data: c.Data.DataPrograms, Logger: log})
	if err != nil {
		return fmt.Errorf("cannot import %s: %w", c.Archive, err)
	}
	begun := time.Now()
	shown := c.show(s, func() engine.Progress { return importProgress(archives, into.Progress()) })
	for _, a := range archives {
		a.Data = c.Data.DataPrograms
	}
	at, done, err := importArchives(ctx, archives, into)
	shown()
	if err != nil {
		if ctx.Err() != nil {
			err = fmt.Errorf("%s: it was stopped", c.Archive)
		}
		into.Close()
		return fmt.Errorf("cannot import %w; %s holds nothing yet, and the next import starts anew", err, c.DataDir)
	}
	fmt.Fprintf(s.err, "imported %d accounts and %d mints at slot %d in %v, state hash %s; ledgerd serve goes on from there\n",
		done.Accounts, done.Mints, at.Slot, time.Since(begun).Round(time.Second), done.StateHash)
	return nil
}

// open looks at the archives, the full one first.
func (c *importCommand) open() (archives []*agave.Archive, err error) {
	full, err := agave.Open(c.Archive)
	if err == nil {
		err = full.Follows(nil)
	}
	if err != nil || c.Incremental == "" {
		return []*agave.Archive{full}, err
	}
	changes, err := agave.Open(c.Incremental)
	if err == nil {
		err = changes.Follows(full)
	}
	return []*agave.Archive{full, changes}, err
}

// importArchives reads archives into an import, and finishes it at the point of the last one. Errors begin with the path of the archive that
// is wrong, or with all of them where that is not known.
func importArchives(ctx context.Context, archives []*agave.Archive, into *importer.Import) (at importer.Point, done importer.Result, err error) {
	var paths []string
	for _, archive := range archives {
		if at, err = archive.Read(ctx, into.Add); err != nil {
			return at, done, fmt.Errorf("%s: %w", archive.Path(), err)
		}
		paths = append(paths, archive.Path())
	}
	if done, err = into.Finish(ctx, at); err != nil {
		err = fmt.Errorf("%s: %w", strings.Join(paths, " with "), err)
	}
	return at, done, err
}

// importProgress says how far an import is. How many accounts there are is known when the archive was read.
func importProgress(archives []*agave.Archive, p importer.Progress) engine.Progress {
	if p.Sorted > 0 {
		return engine.Progress{Phase: "writing accounts", Done: p.Sorted, Total: p.Added}
	}
	now := engine.Progress{Phase: "reading the archive"}
	for _, archive := range archives {
		read, size := archive.Progress()
		now.Done, now.Total = now.Done+uint64(read), now.Total+uint64(size)
	}
	return now
}
