package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"text/tabwriter"
	"time"

	"ledgerd/engine/datadir"
	"ledgerd/snapshot"
	"ledgerd/snapshot/vfs"
)

type snapshotCommand struct {
	List   snapshotListCommand   `cmd:"" help:"List the snapshots, newest first."`
	Verify snapshotVerifyCommand `cmd:"" help:"Read all of every snapshot and say whether it is whole."`
}

// errBadSnapshots says that the lines before name what is damaged, or of a newer program.
var errBadSnapshots = errors.New("not all snapshots can be used")

// snapshots returns the snapshots of a data directory, newest first.
func snapshots(dataDir string) (*snapshot.Store, []snapshot.Info, error) {
	if err := checkDataDir(dataDir); err != nil {
		return nil, nil, err
	}
	store := snapshot.ViewStore(vfs.Disk{}, datadir.SnapshotDir(dataDir), nil)
	infos, err := store.List()
	if errors.Is(err, fs.ErrNotExist) {
		err = nil // no snapshot was ever taken
	}
	return store, infos, err
}

// pruned reports whether a running node removed a snapshot meanwhile: then the files that are
// missing are no damage. The snapshot itself goes first.
func pruned(store *snapshot.Store, i snapshot.Info) bool {
	infos, err := store.List()
	return err == nil && !slices.ContainsFunc(infos, func(o snapshot.Info) bool { return o.Name == i.Name })
}

type snapshotListCommand struct {
	DataDir string `help:"Directory of the node. It may be running." default:"./data"`
}

// Run prints what the snapshots say of themselves.
func (c *snapshotListCommand) Run(s *streams) error {
	store, infos, err := snapshots(c.DataDir)
	if err != nil {
		return err
	}
	bad := false
	table := tabwriter.NewWriter(s.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "NAME\tSLOT\tVERSION\tSEQ\tACCOUNTS\tBYTES\tTAKEN\tHISTORY FILES")
	for _, i := range infos {
		opened, err := store.Open(i)
		switch {
		case err != nil && pruned(store, i):
		case err != nil:
			bad = true
			fmt.Fprintf(table, "%s\t%d\t%d\t-\t-\t%d\t-\t%v\n", i.Name, i.Slot, i.Version, i.Bytes, err)
		default:
			m := opened.Meta()
			fmt.Fprintf(table, "%s\t%d\t%d\t%d\t%d\t%d\t%s\t%d\n", i.Name, i.Slot, i.Version, m.Seq, m.Accounts, i.Bytes,
				m.Taken.UTC().Format(time.RFC3339), len(m.History))
		}
	}
	_ = table.Flush()
	if bad {
		return errBadSnapshots
	}
	return nil
}

type snapshotVerifyCommand struct {
	DataDir string `help:"Directory of the node. It may be running." default:"./data"`
	Name    string `arg:"" optional:"" help:"The snapshot to verify; all by default."`
	quietFlag
}

// Run verifies one snapshot or all of them. It takes all cores it can get.
func (c *snapshotVerifyCommand) Run(ctx context.Context, s *streams) error {
	store, infos, err := snapshots(c.DataDir)
	if err != nil {
		return err
	}
	if c.Name != "" {
		infos = slices.DeleteFunc(infos, func(i snapshot.Info) bool { return i.Name != c.Name })
	}
	meter := &meter{phase: "verifying snapshots", total: uint64(len(infos))}
	defer c.show(s, meter.progress)()
	seen, bad := 0, false
	for _, i := range infos {
		opened, err := store.Open(i)
		if err == nil {
			err = opened.Verify(ctx, snapshot.Pace{})
		}
		meter.done.Add(1)
		var newer *snapshot.FormatError
		switch {
		case err == nil:
			m := opened.Meta()
			fmt.Fprintf(s.out, "%s: ok, %d accounts, %d mints, %d history files, state hash %s\n",
				i.Name, m.Accounts, m.Mints, len(m.History), m.StateHash)
		case pruned(store, i):
			continue
		case errors.Is(err, snapshot.ErrDamaged), errors.As(err, &newer):
			bad = true
			where := i.Name + ": "
			damage := (*snapshot.DamagedError)(nil)
			if newer != nil && newer.File == i.Name || errors.As(err, &damage) && damage.File == i.Name {
				where = "" // the error says it
			}
			fmt.Fprintf(s.out, "%s%v\n", where, err)
		default:
			return fmt.Errorf("cannot verify %s: %w", i.Name, err)
		}
		seen++
	}
	switch {
	case bad:
		return errBadSnapshots
	case seen == 0 && c.Name != "":
		return fmt.Errorf("there is no snapshot of the given name in %s", c.DataDir)
	case seen == 0:
		fmt.Fprintln(s.out, "no snapshots")
	}
	return nil
}
