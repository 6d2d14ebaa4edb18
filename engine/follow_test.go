package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"ledgerd/engine/datadir"
	"ledgerd/engine/ingest"
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
func startMember(t *testing.T, l *sharedLedger, source Source, c Config) clusterNode {
	t.Helper()
	n, err := tryMember(t, l, source, c)
	must(t, err)
	return n
}

// tryMember is startMember on a disk that may fail.
func tryMember(t *testing.T, l *sharedLedger, source Source, c Config) (clusterNode, error) {
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

// TestStandbyTakesOver has a writer deposed in the middle of a fork: what it had not committed nobody
// sees, and the other goes on with all that a writer has to know.
func TestStandbyTakesOver(t *testing.T) {
	bubbletest.Test(t, func(t *testing.T) {
		l := newSharedLedger()
		first := writer(t, l, Config{Shards: 2})
		second := standby(t, l, Config{Shards: 1})
		root := rootBlock(100, lamports(key(1), 5))
		chain := append([]*ledger.Block{root}, chainOf(root, 5)...)
		first.send(events(chain...)...)
		beside := child(chain[3], chain[5].Slot, 7, lamports(key(40), 1)) // not higher than the tip: kept unseen
		orphan := child(chain[1], chain[5].Slot, 8)
		orphans := child(orphan, chain[5].Slot+1, 8)
		waits := child(orphans, chain[5].Slot+9, 8)
		first.send(beside, waits, status(chain[2], ledger.StatusFinalized))
		same(t, "before", first.Engine, second.Engine)
		seen := encoded(second.records())
		if !slices.Equal(seen, encoded(first.records())) {
			t.Error("the standby published other records than the writer")
		}
		ledgertest.Equal(t, second.Stats().Blocks, uint64(len(chain)), "blocks that the standby counts, which are those of the log,")

		l.before = func(*member, []*ledger.Record) error {
			l.before = nil
			l.grantLocked(second.member)
			return ledger.ErrDeposed
		}
		first.try(child(chain[5], chain[5].Slot+1, 0, lamports(key(41), 1)))
		if got := len(first.records()); !errors.Is(first.end(), ledger.ErrDeposed) || got != len(seen) {
			t.Errorf("the deposed writer ended with %v and published %d records more", first.err, got-len(seen))
		}

		// The source of the other shows everything from the finalized block on.
		second.send(events(chain[3:]...)...)
		second.send(waits)
		ledgertest.Equal(t, len(second.records()), len(seen), "records after what was known")
		second.send(orphan) // builds below what is final, of which only the first writer knew: no contradiction
		second.send(beside, child(beside, chain[5].Slot+2, 7, lamports(key(42), 3)))
		ledgertest.Equal(t, second.Head().Tips[0].Slot, chain[5].Slot+2, "the slot once the fork became the chain, %s", second.Status().Unhealthy)
		replica := startMember(t, l, nil, Config{Shards: 2})
		same(t, "at the end", second.Engine, replica.Engine)
	})
}

// F53, F54: TestDifferenceFencesOff damages a replica in different ways: it answers nothing any more, and shows
// nothing of what differs.
func TestDifferenceFencesOff(t *testing.T) {
	root := rootBlock(100, lamports(key(1), 5))
	b101 := child(root, 101, 0, lamports(key(1), 6))
	b102 := child(b101, 102, 0, lamports(key(2), 7))
	bubbletest.Each(t, map[string]func(*ledger.Record) (more []*ledger.Record){
		"another state hash": func(r *ledger.Record) []*ledger.Record { r.StateHash[0]++; return nil },
		"another account":    func(r *ledger.Record) []*ledger.Record { r.Block.Accounts[0].Lamports++; return nil },
		"a record left out":  func(r *ledger.Record) []*ledger.Record { r.Version++; return nil },
		"a block elsewhere":  func(r *ledger.Record) []*ledger.Record { r.Block.Slot, r.Slot = 90, 90; return nil },
		"second of a commit": func(r *ledger.Record) []*ledger.Record {
			again := *r
			again.Version++
			return []*ledger.Record{&again}
		},
	}, func(t *testing.T, tamper func(*ledger.Record) (more []*ledger.Record)) {
		l := newSharedLedger()
		w := writer(t, l, Config{Shards: 2})
		disk := vfstest.NewMemory()
		replica := startMember(t, l, nil, onDisk(t, disk, Config{Shards: 3, SnapshotInterval: time.Second}))
		w.send(root, b101)
		same(t, "before", w.Engine, replica.Engine)
		seen, at := len(replica.published), replica.Head()
		replica.damage = func(c []*ledger.Record) []*ledger.Record { return append(c, tamper(c[0])...) }
		waiting := replica.ask(ledger.Query{MinSlot: 102, Wait: time.Hour}, key(1))
		synctest.Wait()
		w.send(b102, status(b102, ledger.StatusFinalized))
		time.Sleep(time.Minute)

		if replica.hasEnded() {
			t.Fatalf("it ended: %v", replica.err)
		}
		if got := replica.published[seen:]; len(got) > 0 || replica.Head() != nil {
			t.Errorf("it published %d more, and shows %+v", len(got), replica.Head())
		}
		replica.mustSay("fenced itself off")
		for what, err := range map[string]error{
			"an account": (<-replica.ask(ledger.Query{}, key(1))).err,
			"at a head":  (<-replica.ask(ledger.Query{Head: at}, key(1))).err,
			"who waits":  (<-waiting).err,
			"the status": replica.Status().NotReady,
			"the past":   replica.Past(3)(t.Context(), func(*ledger.Publication) bool { return true }),
		} {
			if !errors.Is(err, ledger.ErrUnavailable) || errors.Is(err, ledger.ErrMinSlot) || errors.Is(err, ledger.ErrNoBlock) {
				t.Errorf("%s: %v", what, err)
			}
		}
		replica.close()
		if n := replica.Stats().Snapshot.Count; n > 1 {
			t.Errorf("it took %d snapshots", n)
		}

		// What it holds is good: it comes back as it was, and goes on.
		again := startMember(t, l, nil, onDisk(t, disk, Config{Shards: 1}))
		same(t, "again", w.Engine, again.Engine)
	})
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

// TestOnlyTheWriterFetches asks a node that follows for an account that is not held, and again when it writes.
func TestOnlyTheWriterFetches(t *testing.T) {
	bubbletest.Test(t, func(t *testing.T) {
		l := newSharedLedger()
		l.info = partial()
		u := newFakeNode(100, lamports(key(7), 70))
		first := writer(t, l, Config{Shards: 2, Fetcher: u})
		second := standby(t, l, Config{Shards: 2, Fetcher: u})
		root := rootBlock(100)
		first.send(root, status(root, ledger.StatusConfirmed))
		_, _, err := second.Account(ledger.Query{}, key(7))
		if why, _ := absence(err); why.Absence != ledger.AccountNotIndexed || u.questions() != 0 {
			t.Errorf("one that follows answers %v, and asked %d times", err, u.questions())
		}
		second.mustLead()
		second.mustAnswer(ledger.Query{}, key(7), 70)
		second.mustStop()
		_ = first.stop()
	})
}

// F53: TestLogThatIsLostStopsIngest has the log become one that cannot be followed, at the start and later, and one that cannot be
// written. A node that the log was purged past ends.
func TestLogThatIsLostStopsIngest(t *testing.T) {
	bubbletest.Test(t, func(t *testing.T) {
		l := newSharedLedger()
		w := writer(t, l, Config{Shards: 2})
		disk := vfstest.NewMemory()
		replica := startMember(t, l, nil, onDisk(t, disk, Config{Shards: 1}))
		overtaken := startMember(t, l, nil, Config{Shards: 1})
		root := rootBlock(100, lamports(key(1), 100))
		next := chainOf(root, 2)
		w.send(root)
		replica.fails, overtaken.fails = errLost, ledger.ErrPurged
		w.send(next[0])
		ledgertest.ErrorIs(t, overtaken.end(), ledger.ErrPurged, "a log that was purged")
		l.before = func(*member, []*ledger.Record) error { return errLost }
		w.send(next[1])
		for words, n := range map[string]clusterNode{"cannot be followed": replica, "shared log failed": w} {
			if n.mustSay(words); strings.Contains(n.Status().Unhealthy, "10.0.0.1") {
				t.Errorf("health says %q", n.Status().Unhealthy)
			}
			n.mustStand(101)
		}
		if !w.resigned.Load() {
			t.Error("it holds on to a log that it does not write")
		}
		replica.close()
		l.commits = l.commits[:1]
		shortened := startMember(t, l, nil, onDisk(t, disk, Config{Shards: 1}))
		ledgertest.ErrorSays(t, shortened.end(), "shortened", "a shortened log")
	})
}

func TestHealthFailsWhileTheNodeLags(t *testing.T) {
	bubbletest.Test(t, func(t *testing.T) {
		l := newSharedLedger()
		w := writer(t, l, Config{Shards: 2})
		root := rootBlock(100, lamports(key(1), 100))
		next := chainOf(root, 2)
		w.send(root)
		disk := vfstest.NewMemory()
		replica := startMember(t, l, nil, onDisk(t, disk, Config{Shards: 1, MaxLag: 3 * time.Second}))
		health := func(words ...string) {
			t.Helper()
			replica.mustSay(words...)
			replica.mustStand(100)
		}
		time.Sleep(time.Millisecond)
		health()
		replica.cutOff(true)
		time.Sleep(3 * time.Second)
		health()
		time.Sleep(time.Nanosecond)
		health("behind the shared log: for 3s")
		replica.cutOff(false)
		health()
		replica.close()

		// One that starts apart from the log answers from what it holds, and is not ready.
		l.unreachable = true
		replica = startMember(t, l, nil, onDisk(t, disk, Config{Shards: 1}))
		health("not caught up")
		time.Sleep(time.Hour)
		health("not caught up")
		w.send(next[0])
		replica.cutOff(false)
		replica.mustSay()
		replica.mustStand(101)
		time.Sleep(stallAfter + 1)
		replica.mustSay("the shared log holds none that is newer")
		replica.mustStop()
		// A writer that cannot reach the log says so.
		w.cutOff(true)
		w.try(next[1])
		time.Sleep(ingest.DefaultMaxLag + 1)
		w.mustSay("shared log has not taken")
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
