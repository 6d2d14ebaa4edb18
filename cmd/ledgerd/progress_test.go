package main

import (
	"bytes"
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"ledgerd/engine"
	"ledgerd/engine/ledger/bubbletest"
	"ledgerd/engine/ledger/ledgertest"
)

// reported is how far a recovery is.
type reported struct {
	engine.Progress
	over bool
}

func TestProgressIsToldUntilRecoveryIsOver(t *testing.T) {
	bubbletest.Test(t, func(t *testing.T) {
		var said bytes.Buffer
		var now atomic.Pointer[reported]
		now.Store(&reported{}) // it has not begun yet
		read := func() (engine.Progress, bool) { return now.Load().Progress, now.Load().over }
		say := func(p engine.Progress) { fmt.Fprintln(&said, p.Phase, p.Percent()) }
		wait := showProgress(t.Context(), read, say)
		time.Sleep(progressEvery + time.Second)
		now.Store(&reported{Progress: engine.Progress{Phase: "replaying the log", Done: 1 << 20, Total: 4 << 20}})
		time.Sleep(progressEvery)
		now.Store(&reported{over: true})
		wait() // it ends by itself
		ledgertest.Equal(t, said.String(), "replaying the log 25\n", "what is said")

		ctx, cancel := context.WithCancel(t.Context())
		now.Store(&reported{Progress: engine.Progress{Phase: "x"}})
		wait = showProgress(ctx, read, say)
		cancel()
		wait() // or with the node
	})
}

// A tool says in lines how far it is.
func TestToolsSayHowFarTheyAre(t *testing.T) {
	bubbletest.Test(t, func(t *testing.T) {
		var said bytes.Buffer
		m := &meter{phase: "reading", total: 40}
		stop := quietFlag{}.show(&streams{err: &said}, m.progress)
		_, _ = m.Write(make([]byte, 10))
		time.Sleep(progressEvery + time.Second)
		stop()
		ledgertest.Equal(t, said.String(), "reading: 25 %\n", "what is said")
	})
}
