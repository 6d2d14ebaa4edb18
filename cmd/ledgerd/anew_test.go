package main

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"ledgerd/engine/cluster"
	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/ledgertest"
)

// A node that lost its place in the log begins anew, so often in a row; other ends are as they were.
func TestNodeBeginsAnewWhereItLostItsPlace(t *testing.T) {
	purged, deposed := fmt.Errorf("cannot follow: %w", cluster.ErrPurged), fmt.Errorf("slot 7 was not committed: %w", ledger.ErrDeposed)
	a, other, usage := newAnew(), errors.New("other"), &usageError{errors.New("the port is in use")}
	try := func(err error, rereads, held, again bool) error {
		t.Helper()
		got := a.after(err, rereads, held)
		if errors.Is(got, errAgain) != again || !errors.Is(got, err) && (again || err != error(usage)) {
			t.Errorf("after %v, with a source that is read again %t, having held the log %t: %v, want to begin anew %t", err, rereads, held, got, again)
		}
		return got
	}
	stopped := &usageError{errStopped}
	try(nil, true, true, false)
	try(other, true, true, false)
	if got := try(usage, true, false, false); got != error(usage) {
		t.Errorf("a mistake of who started it became %v", got)
	}
	try(deposed, false, true, false) // the source may be a pipe
	ledgertest.Equal(t, a.trouble(), "", "what health says of a node that has begun once")
	synctest.Test(t, func(t *testing.T) {
		for i := range mostAnew {
			try(purged, true, false, true)
			begun := time.Now()
			must(t, a.wait(t.Context()))
			if waited := time.Since(begun); (waited > 0) != (i > 0) || i > 0 && (waited < a.pause.Min || waited > a.pause.Max) {
				t.Errorf("before attempt %d it waits for %v", i+1, waited)
			}
			ledgertest.Contains(t, a.trouble(), fmt.Sprintf("attempt %d of %d", i+1, mostAnew), "what health says")
		}
	})
	try(purged, true, false, false)
	try(deposed, true, true, true)
	ledgertest.Contains(t, a.trouble(), "attempt 1 of", "what health says")
	for range mostAnew - 1 {
		try(purged, true, false, true)
	}
	try(purged, true, false, false)
	if got := a.after(stopped, true, false); !errors.Is(got, errStopped) {
		t.Errorf("a signal that ends a node before it has begun anew became %v", got)
	}
	if _, is := errors.AsType[*usageError](try(usage, true, false, false)); is {
		t.Error("a port that is taken while the node begins anew ends it as a mistake does, after which no supervisor starts it again")
	}
}
