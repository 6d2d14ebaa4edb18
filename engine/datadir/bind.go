package datadir

import (
	"errors"
	"fmt"

	"ledgerd/engine/ledger"
)

// ErrOtherLedger ends the node whatever its source: nothing that comes later can mend it.
var ErrOtherLedger = errors.New("belongs to another ledger: choose another one with --data-dir")

func (d *Dir) otherLedger() error { return fmt.Errorf("data directory %s %w", d.path, ErrOtherLedger) }

// BindSource binds the directory to the ledger that a source shows, or refuses another one.
func (d *Dir) BindSource(info ledger.SourceInfo) error {
	return d.update(func(n *nodeFile) error {
		switch {
		case n.Source != nil && *n.Source != info.Identity:
			return d.otherLedger()
		case n.Source == nil && n.Import != nil && info.Identity != "": // it makes a ledger of its own
			return d.otherLedger()
		case n.Source == nil:
			n.Source, n.Complete = &info.Identity, info.Complete || n.Complete
		}
		n.Gaps = n.Gaps || info.GapsAllowed
		return nil
	})
}

// BindFilter binds the directory to the accounts it holds, or refuses others: what is held depends
// on the filter from the first record on. It comes before BindSource.
func (d *Dir) BindFilter(f *ledger.Filter) error {
	return d.update(func(n *nodeFile) error {
		switch {
		case sameFilter(f, n.Filter):
		case !d.isNew(n):
			return fmt.Errorf("data directory %s was begun %s: give the same --index-owners and --index-accounts, or choose another --data-dir", d.path, flagsOf(n.Filter))
		default:
			n.Filter = f
		}
		return nil
	})
}

// BindVotes binds the directory to whether vote transactions are held, or refuses the other: it would answer
// for some blocks with votes and for some without. It comes after BindSource.
func (d *Dir) BindVotes(skip bool) error {
	return d.update(func(n *nodeFile) error {
		switch held := n.SkipVotes; {
		case held == nil:
			n.SkipVotes = &skip
		case *held == skip:
		case skip:
			return fmt.Errorf("data directory %s was begun without --skip-votes: leave it out, or choose another --data-dir", d.path)
		default:
			return fmt.Errorf("data directory %s was begun with --skip-votes: give it again, or choose another --data-dir", d.path)
		}
		return nil
	})
}

// BindCluster binds the directory to a ledger that several nodes hold, or refuses another one, or other
// facts of it. A directory that is bound to none must hold nothing yet; what it was bound to by
// BindFilter and BindSource must be what the facts say, and comes from them otherwise.
func (d *Dir) BindCluster(ledgerID string, f Facts) error {
	return d.update(func(n *nodeFile) error {
		switch held := n.facts(); {
		case n.LedgerID == ledgerID:
			if other := held.Difference(&f); other != "" {
				return fmt.Errorf("data directory %s and the stream differ in what they say of the ledger: %s", d.path, other)
			}
			return nil
		case n.LedgerID != "":
			return fmt.Errorf("data directory %s follows the ledger %s, and the stream holds %s: the stream was created anew; restore it, or choose another --data-dir", d.path, n.LedgerID, ledgerID)
		case n.Root != "" || n.Import != nil || d.mustBeNew() != nil:
			return fmt.Errorf("data directory %s holds a ledger of its own: a node of a cluster needs an empty one, choose it with --data-dir", d.path)
		case n.Source != nil && *n.Source != f.Source:
			return fmt.Errorf("data directory %s is of the source %q, the cluster's is %q: choose another --data-dir", d.path, *n.Source, f.Source)
		case n.Source != nil && !sameFilter(n.Filter, f.Filter):
			return fmt.Errorf("data directory %s was begun %s, the cluster holds its ledger %s: choose another --data-dir", d.path, flagsOf(n.Filter), flagsOf(f.Filter))
		}
		n.LedgerID = ledgerID
		n.Source, n.Complete, n.Live, n.SkipVotes, n.Filter = &f.Source, f.Complete, f.Live, &f.SkipVotes, f.Filter
		return nil
	})
}

// isNew reports whether nothing was ever begun in the directory.
func (d *Dir) isNew(n *nodeFile) bool {
	return n.Source == nil && n.Root == "" && n.Import == nil && n.Filter == nil && d.mustBeNew() == nil
}

// CheckRoot refuses a first block that is not the one of the directory's ledger.
func (d *Dir) CheckRoot(root ledger.Hash) error {
	if held := d.content().Root; held != "" && held != root.String() {
		return d.otherLedger()
	}
	return nil
}

// SaveRoot saves the first block of the ledger, where that is known, and whether the source
// ever spoke of finality, which no record tells apart from finality by depth.
func (d *Dir) SaveRoot(root ledger.Opt[ledger.Hash], statuses bool) error {
	return d.update(func(n *nodeFile) error {
		n.Statuses = n.Statuses || statuses
		if root.Known && n.Root == "" { // CheckRoot refused any other
			n.Root = root.Value.String()
		}
		return nil
	})
}

// HasRoot reports whether a first block was ever durable.
func (d *Dir) HasRoot() bool { return d.content().Root != "" }

// Statuses reports whether the source ever spoke of finality.
func (d *Dir) Statuses() bool { return d.content().Statuses }

// ShowsAll reports whether every account of the ledger was shown: the source that the directory is bound to
// shows them all, or the import that made it did, and no blocks may be missing. A filter may leave some out.
func (d *Dir) ShowsAll() bool {
	n := d.content()
	return (n.Complete || n.Import != nil) && !n.Gaps
}

// SkipsVotes reports whether vote transactions are not held.
func (d *Dir) SkipsVotes() bool { return d.content().facts().SkipVotes }

// Filter returns the filter that the directory is bound to, nil if it holds all accounts.
func (d *Dir) Filter() *ledger.Filter { return d.content().Filter }

// Cluster returns the id of the shared ledger that the directory is bound to, and what is known of
// it; "" where it is bound to none.
func (d *Dir) Cluster() (ledgerID string, f Facts) {
	n := d.content()
	if n.LedgerID != "" {
		f = n.facts()
	}
	return n.LedgerID, f
}

// InfoOf adds to what a source says of itself what the directory's cluster knows of it.
func (d *Dir) InfoOf(info ledger.SourceInfo) ledger.SourceInfo {
	if id, f := d.Cluster(); id != "" {
		info.Identity, info.Complete, info.Live = f.Source, f.Complete, f.Live
	}
	return info
}
