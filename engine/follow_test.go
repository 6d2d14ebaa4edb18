package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"ledgerd/engine/datadir"
	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/bubbletest"
	"ledgerd/engine/ledger/ledgertest"
	"ledgerd/snapshot/vfs/vfstest"
)

// clusterNode is a node of a cluster that a test leads.
type clusterNode struct {
	*subject
	*member
}

// startMember runs an engine over a shared log and, where it has one, a source.
func startMember(t *testing.T, l *sharedLedger, source ledger.Source, c Config) clusterNode {
	t.Helper()
	n, err := tryMember(t, l, source, c)
	must(t, err)
	return n
}

// tryMember is startMember on a disk that may fail.
func tryMember(t *testing.T, l *sharedLedger, source ledger.Source, c Config) (clusterNode, error) {
	n := clusterNode{newSubject(t, source, &c), &member{log: l, cut: l.unreachable}}
	if err := c.Dir.BindCluster("the ledger", datadir.FactsOf(l.info, l.filter, l.data, false)); err != nil {
		return clusterNode{}, err
	}
	c.Shared = n.member
	n.run(c, func(p *ledger.Publication) bool { return n.Engine.Head() == p.Head }) // else it is only told, before the first head
	return n, nil
}

// standby starts a member with a scripted source.
func standby(t *testing.T, l *sharedLedger, c Config) clusterNode {
	t.Helper()
	return startMember(t, l, newScript(l.info), c)
}

// writer starts a member with a scripted source and has it write the log.
func writer(t *testing.T, l *sharedLedger, c Config) clusterNode {
	t.Helper()
	n := standby(t, l, c)
	n.mustLead()
	return n
}

// mustLead has the node become the writer.
func (n clusterNode) mustLead() {
	n.log.grant(n.member)
	synctest.Wait()
}

// same fails the test unless two nodes show the same.
func same(t *testing.T, what string, a, b *Engine) {
	t.Helper()
	synctest.Wait()
	x, y := a.Head(), b.Head()
	if x == nil || y == nil || x.Tips != y.Tips || x.StateHash != y.StateHash || x.Root != y.Root {
		t.Fatalf("%s: one stands at %+v, the other at %+v", what, x, y)
	}
	if err := sameAccounts(a, b, testKeys); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

// sameEnd holds where a node ended against where another did, wherever the records lie.
func sameEnd(got, want *ledger.Head) error {
	if got == nil {
		return errors.New("shows nothing")
	}
	for level := range got.Tips {
		if x, y := standing(got.Tips[level], got.StateHash), standing(want.Tips[level], want.StateHash); x != y {
			return fmt.Errorf("stands at %s at level %d, want %s", x, level, y)
		}
	}
	return nil
}

// TestFollowedCommitIsAllOrNothing has the second record of a commit be the root of another ledger, while one
// commit is on its way to the disk and another waits for that. Commits that wait share a sync, so nothing of either is shown.
func TestFollowedCommitIsAllOrNothing(t *testing.T) {
	bubbletest.Test(t, func(t *testing.T) {
		l := newSharedLedger()
		w := writer(t, l, Config{Shards: 2})
		for i := range 3 {
			w.send(&ledger.BaseState{Slot: 99, Accounts: []ledger.AccountWrite{lamports(key(i), 9)}})
		}
		w.send(rootBlock(100, lamports(key(1), 5)))
		w.mustStop()
		l.commits = append(l.commits[:2:2], slices.Concat(l.commits[2:]...))

		gate := make(chan struct{})
		l.unreachable = true
		replica := startMember(t, l, nil, Config{Shards: 1, OnSync: func(time.Duration) { <-gate }})
		synctest.Wait()
		must(t, replica.config.Dir.SaveRoot(ledger.Some(hash(1)), false))
		replica.cutOff(false)
		synctest.Wait()
		close(gate)
		ledgertest.ErrorIs(t, replica.end(), datadir.ErrOtherLedger, "the end")
		ledgertest.Equal(t, len(replica.records()), 1, "records shown: that of the commit that was on its way")
	})
}

// TestQuestionsWhileJoining asks for lists, accounts and health while the directory is bound to a cluster and what
// that says of the ledger is learned: nothing but the race detector looks at the answers.
func TestQuestionsWhileJoining(t *testing.T) {
	bubbletest.Test(t, func(t *testing.T) {
		c := onDisk(t, vfstest.NewMemory(), Config{})
		release := make(chan struct{})
		c.Join = func(context.Context, func(done, total uint64)) error {
			<-release
			return c.Dir.BindCluster("the ledger", datadir.FactsOf(live(), ledger.NewFilter([]ledger.Pubkey{ledger.SystemProgram}, nil), nil, true))
		}
		n := startNode(t, live(), c)
		var asking sync.WaitGroup
		asking.Go(func() {
			for !n.board.Ready.Load() {
				_, _, _, _ = n.Program(ledger.Query{}, key(1), ledger.Opt[ledger.Pubkey]{}, 10, nil)
				_, _, _, _ = n.Tokens(ledger.Query{}, key(1), ledger.Opt[ledger.Pubkey]{}, 10, nil)
				_, _, _ = n.Accounts(ledger.Query{}, []ledger.Pubkey{key(1)})
				n.Status()
				n.Stats()
			}
		})
		close(release)
		n.source.feed <- rootBlock(100, lamports(key(1), 5))
		asking.Wait()
	})
}
