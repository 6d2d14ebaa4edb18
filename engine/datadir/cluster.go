package datadir

import (
	"fmt"

	"ledgerd/engine/ledger"
)

// clusterNote is what node.json says of the shared log that a directory belongs to.
type clusterNote struct {
	LedgerID string    `json:"ledger_id"` // of the shared log: another one is another ledger, whatever its name
	Facts    factsNote `json:"facts"`
}

// BindCluster ties the directory to a ledger that several nodes hold, or refuses another one, or other
// facts of it. A directory that is tied to none must hold nothing yet; what it was bound to by
// BindFilter and BindSource must be what the facts say, and comes from them otherwise.
func (d *Dir) BindCluster(ledgerID string, f Facts) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if c := d.node.Cluster; c != nil {
		return d.sameClusterLocked(c, ledgerID, &f)
	}
	n := d.node
	if n.Root != "" || n.Import != nil || d.mustBeNew() != nil {
		return fmt.Errorf("data directory %s holds a ledger of its own: a node of a cluster needs an empty one, choose it with --data-dir", d.path)
	}
	if n.Source != nil && *n.Source != f.Source {
		return fmt.Errorf("data directory %s is of the source %q, the cluster's is %q: choose another --data-dir", d.path, *n.Source, f.Source)
	}
	if n.Source != nil && !n.Filter.same(noteOf(f.Filter)) {
		return fmt.Errorf("data directory %s was begun %s, the cluster holds its ledger %s: choose another --data-dir", d.path, n.Filter.flags(), noteOf(f.Filter).flags())
	}
	n.Cluster = &clusterNote{LedgerID: ledgerID, Facts: f.note()}
	n.Source, n.Filter, n.Complete, n.SkipVotes = &f.Source, noteOf(f.Filter), f.Complete, &f.SkipVotes
	if err := d.replaceLocked(n); err != nil {
		return err
	}
	d.filter = f.Filter
	return nil
}

func (d *Dir) sameClusterLocked(c *clusterNote, ledgerID string, f *Facts) error {
	if c.LedgerID != ledgerID {
		return fmt.Errorf("data directory %s follows the ledger %s, and the stream holds %s: the stream was created anew; restore it, or choose another --data-dir", d.path, c.LedgerID, ledgerID)
	}
	held, err := c.Facts.facts()
	if err != nil {
		return fmt.Errorf("%s is damaged: restore it, or start with another --data-dir", d.file())
	}
	if other := held.Difference(f); other != "" {
		return fmt.Errorf("data directory %s and the stream differ in what they say of the ledger: %s", d.path, other)
	}
	return nil
}

// Cluster returns the id of the shared ledger that the directory is tied to, and what is known of
// it; "" where it is tied to none.
func (d *Dir) Cluster() (ledgerID string, f Facts) {
	d.mu.Lock()
	defer d.mu.Unlock()
	c := d.node.Cluster
	if c == nil {
		return "", Facts{}
	}
	f, _ = c.Facts.facts() // load refuses what is not one
	return c.LedgerID, f
}

// InfoOf adds to what a source says of itself what the directory's cluster knows of it.
func (d *Dir) InfoOf(info ledger.SourceInfo) ledger.SourceInfo {
	if id, f := d.Cluster(); id != "" {
		info.Identity, info.Complete, info.Live = f.Source, f.Complete, f.Live
	}
	return info
}
