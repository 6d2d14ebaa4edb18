package engine

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"

	"ledgerd/engine/datadir"
	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/bubble"
	"ledgerd/snapshot/vfs/vfstest"
)

// TestQuestionsWhileJoining asks for lists, accounts and health while the directory is bound to a cluster and what
// that says of the ledger is learned: nothing but the race detector looks at the answers.
func TestQuestionsWhileJoining(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		c := onDisk(t, vfstest.NewMemory(), Config{})
		release := make(chan struct{})
		c.Join = func(context.Context, func(done, total uint64)) error {
			<-release
			return c.Dir.BindCluster("the ledger", datadir.FactsOf(live(), ledger.NewFilter([]ledger.Pubkey{ledger.SystemProgram}, nil), true))
		}
		n := startNode(t, live(), c)
		var asking sync.WaitGroup
		var over atomic.Bool
		for _, ask := range []func(){
			func() { _, _, _, _ = n.Program(ledger.Query{}, key(1), ledger.Opt[ledger.Pubkey]{}, 10) },
			func() { _, _, _, _ = n.Tokens(ledger.Query{}, key(1), ledger.Opt[ledger.Pubkey]{}, 10) },
			func() { _, _, _ = n.Accounts(ledger.Query{}, []ledger.Pubkey{key(1)}) },
			func() { n.Status() },
		} {
			asking.Go(func() {
				for !over.Load() {
					ask()
				}
			})
		}
		close(release)
		n.source.feed <- rootBlock(100, lamports(key(1), 5))
		for !n.ready.Load() {
			n.Stats()
		}
		over.Store(true)
		asking.Wait()
		n.mustStop()
	})
}
