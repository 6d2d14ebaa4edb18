package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"ledgerd/engine/cluster"
	"ledgerd/engine/cluster/exchange"
	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/wait"
)

const (
	// lookPatience bounds how long a start asks whether the log goes on from what the node holds: where no server answers
	// it answers what it holds.
	lookPatience = 2 * time.Second
	// newerPatience bounds how long it looks for a newer snapshot, once it was told that the log does not.
	newerPatience = 20 * time.Second
	newerInterval = time.Second // between two looks of a node that waits for one
)

// sharedLog is the log of the cluster as the engine follows it.
type sharedLog struct {
	*cluster.Log
	node *node
}

// Follow is that of the log. Where the log was purged past the node it waits until a newer snapshot is offered before it returns
// that: the engine goes on to answer meanwhile and ends then, and the node begins anew, with the snapshot.
func (l sharedLog) Follow(ctx context.Context, from ledger.LogPoint, take func(commit []*ledger.Record) error) error {
	err := l.Log.Follow(ctx, from, func(commit []*ledger.Record) error {
		err := take(commit)
		if err == nil && len(commit) > 0 {
			from = ledger.PointAfter(commit[len(commit)-1])
		}
		return err
	})
	if !errors.Is(err, cluster.ErrPurged) {
		return err
	}
	if waitErr := l.node.untilOffered(ctx, "the cluster's log begins after what this node holds: waits until a newer snapshot is offered", func() error {
		_, err := l.node.newer(ctx, from.Version)
		return err
	}); waitErr != nil {
		return waitErr
	}
	return err
}

// setAside sets aside what the data directory holds where the cluster's log was purged past it and a newer snapshot
// is offered, and reports whether it did. Whatever else is the matter with the log, following it tells.
func (n *node) setAside(ctx context.Context) (done bool, err error) {
	least, err := n.dir.LeastVersion()
	if err != nil || !n.purgedPast(ctx, least) {
		return false, ctx.Err()
	}
	last, err := n.dir.LastVersion(ctx) // only now is the own log worth reading
	if err != nil || !n.purgedPast(ctx, last) {
		return false, ctx.Err()
	}
	bounded, cancel := context.WithTimeout(ctx, newerPatience)
	defer cancel()
	offered, err := n.newer(bounded, last)
	if err != nil {
		n.logger.Error("the cluster's log was purged past what this node holds, and no newer snapshot is offered that leads to it",
			"holds_version", uint64(last), "error", err)
		return false, ctx.Err()
	}
	newest := offered[0]
	n.logger.Warn("the cluster's log was purged past what this node holds: it is set aside, and the node begins with a snapshot",
		"holds_version", uint64(last), "snapshot_version", uint64(newest.Version), "kept_in", n.dataDir, "snapshot_slot", uint64(newest.Slot))
	return true, n.dir.SetAside()
}

// purgedPast reports whether the log is known not to go on from a version any more.
func (n *node) purgedPast(ctx context.Context, v ledger.Version) bool {
	ctx, cancel := context.WithTimeout(ctx, lookPatience)
	defer cancel()
	return errors.Is(n.cluster.GoesOn(ctx, v), cluster.ErrPurged)
}

// newer returns the snapshots that are offered, newest first, where the newest is of a later version and the log can be followed
// from there. exchange.ErrNoSnapshot or cluster.ErrPurged: there is none yet.
func (n *node) newer(ctx context.Context, than ledger.Version) ([]*exchange.Manifest, error) {
	offered, err := n.exchange.Offered(ctx)
	if err != nil {
		return nil, err
	}
	if offered[0].Version <= than {
		return nil, fmt.Errorf("%w that is newer than version %d", exchange.ErrNoSnapshot, than)
	}
	_, err = n.cluster.RecordAt(ctx, offered[0].Version)
	return offered, err
}

// untilOffered repeats what takes a snapshot of another node until one is offered and given. waits is what is said of that.
func (n *node) untilOffered(ctx context.Context, waits string, try func() error) error {
	for told := ""; ; {
		err := try()
		if !lacksSnapshot(err) {
			return err
		}
		if err.Error() != told {
			told = err.Error()
			n.logger.Warn(waits, "error", err)
		}
		if err := wait.Sleep(ctx, newerInterval); err != nil {
			return err
		}
	}
}

// lacksSnapshot reports whether an error says that no node gives a snapshot that leads to the log.
func lacksSnapshot(err error) bool {
	return errors.Is(err, exchange.ErrNoSnapshot) || errors.Is(err, exchange.ErrNoPeer) || errors.Is(err, cluster.ErrPurged)
}

// mostAnew is how often in a row a node begins anew in vain until it ends.
const mostAnew = 8

// errAgain says that the node begins anew.
var errAgain = errors.New("the node begins anew")

// anew lets a node of a cluster begin anew in its process, as it would in a new one: where the log was purged past what it holds, be it while
// it read a snapshot in, and where another node writes in its place. What it applied and nobody acknowledged cannot be taken back; its own log
// has none of that. Its listeners are closed for a moment, and its sockets end: what they show is the engine's, and another one beside it until
// it has read everything in would take the memory of the ledger twice.
type anew struct {
	begun  bool // ever
	inVain int  // so often it began in a row and never held the whole log
	pause  wait.Backoff
}

func newAnew() *anew {
	return &anew{pause: wait.Backoff{Min: time.Second, Max: time.Minute}}
}

// after returns errAgain after a run that ended with err, if the node is to begin anew, and else what to end with. rereads: its source
// shows everything again, which a pipe does not. held: the node knew meanwhile that it held the whole log.
func (a *anew) after(err error, rereads, held bool) error {
	if !errors.Is(err, cluster.ErrPurged) && !errors.Is(err, ledger.ErrDeposed) {
		if _, usage := errors.AsType[*usageError](err); usage && a.begun {
			return fmt.Errorf("cannot begin anew: %v", err) // a supervisor is to start it again: nobody asked for anything wrong
		}
		return err
	}
	if held {
		a.inVain = 0
		a.pause.Reset()
	}
	if !rereads || a.inVain == mostAnew {
		return fmt.Errorf("%w: start this node again", err)
	}
	a.inVain++
	a.begun = true
	return fmt.Errorf("%w: %w", errAgain, err)
}

// wait lets some time pass before a further attempt.
func (a *anew) wait(ctx context.Context) error {
	if a.inVain <= 1 {
		return nil
	}
	return a.pause.Wait(ctx)
}

// trouble returns what health adds to the reason why the node is not ready.
func (a *anew) trouble() string {
	if a.inVain == 0 {
		return ""
	}
	return fmt.Sprintf("; it lost its place in the shared log and began anew: attempt %d of %d", a.inVain, mostAnew)
}

// heldWholeLog reports whether the node knew, since it began, that it held the whole log.
func (n *node) heldWholeLog() bool {
	if n.engine == nil || n.cluster == nil {
		return false
	}
	since := n.engine.Status().Uptime // before the other, which grows as this one does
	return n.cluster.Log().Behind() < since
}

// keepPort has a listener that is opened again have the port that the system chose for it first.
func keepPort(flag *string, l net.Listener) {
	if at, ok := l.Addr().(*net.TCPAddr); ok && strings.HasSuffix(*flag, ":0") {
		*flag = at.String()
	}
}
