package datadir

import (
	"errors"
	"fmt"
	"slices"

	"ledgerd/engine/ledger"
)

// ErrOtherLedger ends the node with every kind of source: later events cannot repair it.
var ErrOtherLedger = errors.New("belongs to another ledger: choose another one with --data-dir")

func (d *Dir) otherLedger() error { return fmt.Errorf("data directory %s %w", d.path, ErrOtherLedger) }

// Bind binds the directory to what a node is started with, or refuses what differs from what the directory was begun with: its
// source, the filter, the programs whose data is held and the choice about votes decide from the first record on what is held. source is
// nil where the node has none; then a filter, programs and a choice that are not given are not asked for.
func (d *Dir) Bind(source *ledger.SourceInfo, f *ledger.Filter, data *ledger.DataPrograms, skipVotes bool) error {
	return d.update(func(n *nodeFile) error {
		isNew := d.isNew(n)
		if (source != nil || f != nil) && flagsOf(f) != flagsOf(n.Filter) {
			if !isNew {
				return fmt.Errorf("data directory %s was begun %s: give the same --index-owners and --index-accounts, or choose another --data-dir", d.path, flagsOf(n.Filter))
			}
			n.Filter = f
		}
		if (source != nil || data != nil) && data.String() != n.Data.String() {
			if !isNew {
				return fmt.Errorf("data directory %s was begun with --data %s: give it again, or choose another --data-dir, as other data comes with new base state alone", d.path, n.Data)
			}
			n.Data = data
		}
		if source != nil {
			if err := d.bindSource(n, source); err != nil {
				return err
			}
		}
		switch bound := n.SkipVotes; {
		case source == nil && !skipVotes, bound != nil && *bound == skipVotes:
		case bound == nil:
			n.SkipVotes = &skipVotes
		case skipVotes:
			return fmt.Errorf("data directory %s was begun without --skip-votes: leave it out, or choose another --data-dir", d.path)
		default:
			return fmt.Errorf("data directory %s was begun with --skip-votes: give it again, or choose another --data-dir", d.path)
		}
		return nil
	})
}

// bindSource binds n to the ledger that a source shows, or refuses another one.
func (d *Dir) bindSource(n *nodeFile, info *ledger.SourceInfo) error {
	switch {
	case n.Source != nil && *n.Source != info.Identity:
		return d.otherLedger()
	case n.Source == nil && n.Import != nil && info.Identity != "": // a source with an identity has its own ledger
		return d.otherLedger()
	case n.Source == nil:
		n.Source, n.Complete = &info.Identity, info.Complete || n.Complete
	}
	n.Gaps = n.Gaps || info.GapsAllowed
	return nil
}

// BindCluster binds the directory to the ledger of a cluster and its facts, or refuses another ledger or other
// facts. A directory that is not yet bound to a cluster must not hold a ledger. Where Bind has bound it, the facts must agree;
// everything else is taken from the facts.
func (d *Dir) BindCluster(ledgerID string, f Facts) error { return d.bindCluster(ledgerID, f, false) }

// FoundCluster is BindCluster for the node that begins the ledger of a cluster: with the ledger that its directory holds.
func (d *Dir) FoundCluster(ledgerID string, f Facts) error { return d.bindCluster(ledgerID, f, true) }

func (d *Dir) bindCluster(ledgerID string, f Facts, founds bool) error {
	return d.update(func(n *nodeFile) error {
		switch bound := n.facts(); {
		case n.LedgerID == ledgerID:
			if other := bound.Difference(&f); other != "" {
				return fmt.Errorf("data directory %s and the stream differ in what they say of the ledger: %s", d.path, other)
			}
			return nil
		case n.LedgerID != "":
			return fmt.Errorf("data directory %s follows the ledger %s, and the stream holds %s: the stream was created anew; restore it, or choose another --data-dir", d.path, n.LedgerID, ledgerID)
		case !founds && (n.Root != "" || n.Import != nil || d.mustBeNew() != nil):
			return fmt.Errorf("data directory %s holds a ledger of its own: only the node that founds a cluster, with --role all and a log that is not there yet, may bring one; choose an empty directory with --data-dir", d.path)
		case n.Source != nil && *n.Source != f.Source:
			return fmt.Errorf("data directory %s is of the source %q, the cluster's is %q: choose another --data-dir", d.path, *n.Source, f.Source)
		case n.Source != nil && flagsOf(n.Filter) != flagsOf(f.Filter):
			return fmt.Errorf("data directory %s was begun %s, the cluster holds its ledger %s: choose another --data-dir", d.path, flagsOf(n.Filter), flagsOf(f.Filter))
		case n.Source != nil && n.Data.String() != f.Data.String():
			return fmt.Errorf("data directory %s was begun with --data %s, the cluster holds its ledger with --data %s: choose another --data-dir", d.path, n.Data, f.Data)
		}
		n.LedgerID = ledgerID
		n.Source, n.Complete, n.Live, n.SkipVotes, n.Filter, n.Data = &f.Source, f.Complete, f.Live, &f.SkipVotes, f.Filter, f.Data
		return nil
	})
}

// isNew reports whether the directory is bound to nothing and holds nothing.
func (d *Dir) isNew(n *nodeFile) bool {
	return n.Source == nil && n.Root == "" && n.Import == nil && n.Filter == nil && n.Data == nil && d.mustBeNew() == nil
}

// CheckRoot returns ErrOtherLedger if root is not the first block of the directory's ledger.
func (d *Dir) CheckRoot(root ledger.Hash) error {
	if saved := d.content().Root; saved != "" && saved != root.String() {
		return d.otherLedger()
	}
	return nil
}

// SaveRoot saves the first block of the ledger, if it is known, and whether the source
// has sent a slot status; records do not distinguish statuses from finality by depth.
func (d *Dir) SaveRoot(root ledger.Opt[ledger.Hash], statuses bool) error {
	return d.update(func(n *nodeFile) error {
		n.Statuses = n.Statuses || statuses
		if root.Known && n.Root == "" { // CheckRoot refused any other
			n.Root = root.Value.String()
		}
		return nil
	})
}

// HasRoot reports whether SaveRoot has saved a first block.
func (d *Dir) HasRoot() bool { return d.content().Root != "" }

// Ledgers returns what the directory's ledger is known by: its id in a cluster, and its first block. A new directory has neither.
func (d *Dir) Ledgers() []string {
	n := d.content()
	return slices.DeleteFunc([]string{n.LedgerID, n.Root}, func(id string) bool { return id == "" })
}

// Statuses reports whether the source has sent a slot status.
func (d *Dir) Statuses() bool { return d.content().Statuses }

// ShowsAll reports whether every account of the ledger was shown to the node: the source of the directory
// is complete or an import made it, and no blocks may be missing. A filter may still exclude accounts.
func (d *Dir) ShowsAll() bool {
	n := d.content()
	return (n.Complete || n.Import != nil) && !n.Gaps
}

// SkipsVotes reports whether vote transactions are not held.
func (d *Dir) SkipsVotes() bool { return d.content().facts().SkipVotes }

// Filter returns the filter that the directory is bound to, nil if it holds all accounts.
func (d *Dir) Filter() *ledger.Filter { return d.content().Filter }

// Data returns the programs whose accounts are held with their data, nil for none.
func (d *Dir) Data() *ledger.DataPrograms { return d.content().Data }

// Cluster returns the id and the facts of the cluster's ledger that the directory is bound to; "" if there is
// none.
func (d *Dir) Cluster() (ledgerID string, f Facts) {
	n := d.content()
	if n.LedgerID != "" {
		f = n.facts()
	}
	return n.LedgerID, f
}
