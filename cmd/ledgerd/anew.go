package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"ledgerd/engine/cluster"
	"ledgerd/engine/ledger"
	"ledgerd/engine/source/upstream"
)

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
	pause  upstream.Backoff
}

func newAnew() *anew {
	return &anew{pause: upstream.Backoff{Min: time.Second, Max: time.Minute}}
}

// after returns errAgain after a run that ended with err, if the node is to begin anew, and else what to end with. rereads: its source
// shows everything again, which a pipe does not. held: the node knew meanwhile that it held the whole log.
func (a *anew) after(err error, rereads, held bool) error {
	if !errors.Is(err, cluster.ErrPurged) && !errors.Is(err, ledger.ErrDeposed) {
		if _, usage := errors.AsType[*usageError](err); usage && a.begun && !errors.Is(err, errStopped) {
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
