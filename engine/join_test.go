package engine

import (
	"context"
	"sync"
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
		asking.Go(func() {
			for !n.ready.Load() {
				_, _, _, _ = n.Program(ledger.Query{}, key(1), ledger.Opt[ledger.Pubkey]{}, 10)
				_, _, _, _ = n.Tokens(ledger.Query{}, key(1), ledger.Opt[ledger.Pubkey]{}, 10)
				_, _, _ = n.Accounts(ledger.Query{}, []ledger.Pubkey{key(1)})
				n.Status()
				n.Stats()
			}
		})
		close(release)
		n.source.feed <- rootBlock(100, lamports(key(1), 5))
		asking.Wait()
		n.mustStop()
	})
}
