package engine

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ledgerd/engine/codec"
	"ledgerd/engine/datadir"
	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/bubble"
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
	if c.Dir == nil {
		c = onDisk(t, vfstest.NewMemory(), c)
	}
	if err := c.Dir.BindCluster("the ledger", datadir.FactsOf(live(), nil, false)); err != nil {
		t.Fatal(err)
	}
	return startMemberOf(t, l, source, c)
}

// startMemberOf is startMember in a directory that is tied to its ledger.
func startMemberOf(t *testing.T, l *sharedLedger, source Source, c Config) clusterNode {
	t.Helper()
	m := l.join()
	c.Shared, c.Source = m, source
	n := clusterNode{&subject{t: t, ended: make(chan struct{})}, m}
	n.source, _ = source.(*script)
	n.run(c, func(p *ledger.Publication) bool { return n.Engine.Head() == p.Head }) // else it is only told, before the first head
	return n
}

// writer starts a member with a scripted source and has it write the log.
func writer(t *testing.T, l *sharedLedger, c Config) clusterNode {
	t.Helper()
	n := startMember(t, l, newScript(live()), c)
	l.grant(n.member)
	synctest.Wait()
	return n
}

// same fails the test unless two nodes show the same.
func same(t *testing.T, what string, a, b *Engine) {
	t.Helper()
	synctest.Wait()
	x, y := a.Head(), b.Head()
	if x == nil || y == nil || x.Tips != y.Tips || x.StateHash != y.StateHash || x.Root != y.Root {
		t.Fatalf("%s: one stands at %+v, the other at %+v", what, x, y)
	}
	if err := sameState(a, b); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

// mustShow fails the test unless the newest slot shown is this one.
func mustShow(t *testing.T, e *Engine, slot ledger.Slot) {
	t.Helper()
	synctest.Wait()
	if h := e.Head(); h == nil || h.Tips[0].Slot != slot {
		t.Fatalf("it stands at %+v, want slot %d", h, slot)
	}
}

// encodedRecords returns the records that a node published.
func encodedRecords(n *subject) (all []string) {
	for _, r := range n.records() {
		all = append(all, string(codec.AppendRecord(nil, r)))
	}
	return all
}

func TestReplicaShowsWhatTheWriterWrote(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		l := newSharedLedger()
		w := writer(t, l, Config{Shards: 2})
		replica := startMember(t, l, nil, onDisk(t, vfstest.NewMemory(), Config{Shards: 3}))
		root := rootBlock(100, lamports(key(1), 5))
		a, b := child(root, 101, 0, lamports(key(1), 6)), child(root, 102, 1, lamports(key(2), 7))
		for _, e := range []ledger.Event{&ledger.BaseState{Slot: 99, Accounts: []ledger.AccountWrite{lamports(key(3), 9)}}, root, a, b, child(b, 103, 0), status(b, ledger.StatusConfirmed), status(b, ledger.StatusFinalized)} {
			w.send(e)
			if h := w.Head(); h.HasBlock {
				same(t, "after an event", w.Engine, replica.Engine)
			}
		}
		if got, want := encodedRecords(replica.subject), encodedRecords(w.subject); !slices.Equal(got, want) {
			t.Errorf("the replica published %d records, the writer %d, or others", len(got), len(want))
		}
		if got := replica.Stats().Blocks; got != 4 {
			t.Errorf("the replica counts %d blocks", got)
		}
		w.mustStop()
		replica.mustStop()
	})
}

// TestStandbyTakesOver has a writer deposed in the middle of a fork: what it had not committed nobody
// sees, and the other goes on with all that a writer has to know.
func TestStandbyTakesOver(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		l := newSharedLedger()
		first := writer(t, l, onDisk(t, vfstest.NewMemory(), Config{Shards: 2}))
		second := startMember(t, l, newScript(live()), onDisk(t, vfstest.NewMemory(), Config{Shards: 1}))
		root := rootBlock(100, lamports(key(1), 5))
		chain := append([]*ledger.Block{root}, chainOf(root, 5)...)
		first.send(events(chain...)...)
		beside := child(chain[3], chain[5].Slot, 7, lamports(key(40), 1)) // not higher than the tip: kept unseen
		orphan := child(chain[1], chain[5].Slot, 8)
		orphans := child(orphan, chain[5].Slot+1, 8)
		waits := child(orphans, chain[5].Slot+9, 8)
		first.send(beside, waits, status(chain[2], ledger.StatusFinalized))
		same(t, "before", first.Engine, second.Engine)
		seen := len(first.records())

		l.before = func(*member, []*ledger.Record) error { l.grantLocked(second.member); return ledger.ErrDeposed }
		lost := child(chain[5], chain[5].Slot+1, 0, lamports(key(41), 1))
		first.try(lost)
		<-first.ended
		l.mu.Lock()
		l.before = nil
		l.mu.Unlock()
		if !errors.Is(first.err, ledger.ErrDeposed) {
			t.Errorf("the deposed writer ended with %v", first.err)
		}
		if got := len(first.records()); got != seen {
			t.Errorf("the deposed writer published %d records more", got-seen)
		}

		// The source of the other shows everything from the finalized block on.
		second.send(events(chain[3:]...)...)
		second.send(waits)
		if got := len(second.records()); got != seen {
			t.Errorf("what was known led to %d records", got-seen)
		}
		second.send(orphan) // builds below what is final, of which only the first writer knew: no contradiction
		second.send(beside, child(beside, chain[5].Slot+2, 7, lamports(key(42), 3)))
		if h := second.Head(); h.Tips[0].Slot != chain[5].Slot+2 {
			t.Errorf("the fork did not become the chain: %+v, %s", h.Tips[0], second.Status().Unhealthy)
		}
		replica := startMember(t, l, nil, Config{Shards: 2})
		same(t, "at the end", second.Engine, replica.Engine)
		second.mustStop()
		replica.mustStop()
	})
}

func TestOtherCommitErrorFreezesTheWriter(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		l := newSharedLedger()
		w := writer(t, l, Config{Shards: 2})
		root := rootBlock(100, lamports(key(1), 5))
		w.send(root)
		l.before = func(*member, []*ledger.Record) error { return errLost }
		w.send(child(root, 101, 0, lamports(key(1), 6)))
		mustShow(t, w.Engine, 100)
		if why := w.Status().Unhealthy; !strings.Contains(why, "shared log failed") || strings.Contains(why, "10.0.0.1") {
			t.Errorf("health says %q", why)
		}
		if a, _, err := w.Account(ledger.Query{}, key(1)); err != nil || a.Lamports != 5 {
			t.Errorf("reads: %v, %v", a.Lamports, err)
		}
		if !w.resigned {
			t.Error("it holds on to a log that it does not write")
		}
		w.mustStop()
	})
}

// TestDifferenceFencesOff damages a replica in different ways: it answers nothing any more, and shows
// nothing of what differs.
func TestDifferenceFencesOff(t *testing.T) {
	root := rootBlock(100, lamports(key(1), 5))
	b101 := child(root, 101, 0, lamports(key(1), 6))
	b102 := child(b101, 102, 0, lamports(key(2), 7))
	for name, tamper := range map[string]func(n clusterNode){
		"another state hash": func(n clusterNode) {
			n.damage = func(c []*ledger.Record) []*ledger.Record { c[0].StateHash[0]++; return c }
		},
		"another account": func(n clusterNode) {
			n.damage = func(c []*ledger.Record) []*ledger.Record { c[0].Block.Accounts[0].Lamports++; return c }
		},
		"a record left out": func(n clusterNode) {
			n.damage = func(c []*ledger.Record) []*ledger.Record { c[0].Version++; return c }
		},
		"a block elsewhere": func(n clusterNode) {
			n.damage = func(c []*ledger.Record) []*ledger.Record { c[0].Block.Slot, c[0].Slot = 90, 90; return c }
		},
		"second of a commit": func(n clusterNode) {
			n.damage = func(c []*ledger.Record) []*ledger.Record {
				again := *c[0]
				again.Version++
				return append(c, &again)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				l := newSharedLedger()
				w := writer(t, l, Config{Shards: 2})
				disk := vfstest.NewMemory()
				c := onDisk(t, disk, Config{Shards: 3, SnapshotInterval: time.Second})
				replica := startMember(t, l, nil, c)
				w.send(root, b101)
				same(t, "before", w.Engine, replica.Engine)
				seen, at := len(replica.published), replica.Head()
				tamper(replica)
				waiting := make(chan error, 1)
				go func() {
					_, _, err := replica.Account(ledger.Query{MinSlot: 102, Wait: time.Hour}, key(1))
					waiting <- err
				}()
				synctest.Wait()
				w.send(b102, status(b102, ledger.StatusFinalized))
				time.Sleep(time.Minute)

				if replica.hasEnded() {
					t.Fatalf("it ended: %v", replica.err)
				}
				if got := replica.published[seen:]; len(got) > 0 || replica.Head() != nil {
					t.Errorf("it published %d more, and shows %+v", len(got), replica.Head())
				}
				why := replica.Fenced()
				if !strings.Contains(why, "fenced itself off") || replica.Status().Unhealthy != why {
					t.Errorf("fenced: %q, health: %q", why, replica.Status().Unhealthy)
				}
				for what, err := range map[string]error{
					"an account": second(replica.Account(ledger.Query{}, key(1))),
					"at a head":  second(replica.Account(ledger.Query{Head: at}, key(1))),
					"who waits":  <-waiting,
					"the status": replica.Status().NotReady,
					"the past":   replica.Past(3)(t.Context(), func(*ledger.Publication) bool { return true }),
				} {
					if !errors.Is(err, ledger.ErrUnavailable) || errors.Is(err, ledger.ErrMinSlot) || errors.Is(err, ledger.ErrNoBlock) {
						t.Errorf("%s: %v", what, err)
					}
				}
				replica.mustStop()
				c.Dir.Close()
				if n := replica.Stats().Snapshot.Count; n > 1 {
					t.Errorf("it took %d snapshots", n)
				}

				// What it holds is good: it comes back as it was, and goes on.
				again := startMember(t, l, nil, onDisk(t, disk, Config{Shards: 1}))
				same(t, "again", w.Engine, again.Engine)
				again.mustStop()
				w.mustStop()
			})
		})
	}
}

// TestFollowedCommitIsAllOrNothing has the second record of a commit be the root of another ledger, while one
// commit is on its way to the disk and another waits for that.
func TestFollowedCommitIsAllOrNothing(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		l := newSharedLedger()
		w := writer(t, l, Config{Shards: 2})
		for i := range 3 {
			w.send(&ledger.BaseState{Slot: 99, Accounts: []ledger.AccountWrite{lamports(key(i), 9)}})
		}
		w.send(rootBlock(100, lamports(key(1), 5)))
		w.mustStop()
		l.commits = append(l.commits[:2:2], slices.Concat(l.commits[2:]...))
		l.first = l.first[:3]

		gate := make(chan struct{})
		c := onDisk(t, vfstest.NewMemory(), Config{Shards: 1, OnSync: func(time.Duration) { <-gate }})
		if err := c.Dir.BindCluster("the ledger", datadir.FactsOf(live(), nil, false)); err != nil {
			t.Fatal(err)
		}
		l.unreachable = true
		replica := startMemberOf(t, l, nil, c)
		synctest.Wait()
		if err := c.Dir.SaveRoot(ledger.Some(hash(1)), false); err != nil {
			t.Fatal(err)
		}
		replica.cutOff(false)
		synctest.Wait()
		close(gate)
		<-replica.ended
		if !errors.Is(replica.err, datadir.ErrOtherLedger) {
			t.Errorf("ended with %v", replica.err)
		}
		if n := len(replica.records()); n != 1 {
			t.Errorf("%d records were shown, want that of the commit that was on its way", n)
		}
	})
}

// TestFollowedCommitsShareASync has twenty commits wait while the first is on its way to the disk.
func TestFollowedCommitsShareASync(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		l := newSharedLedger()
		w := writer(t, l, Config{Shards: 2})
		root := rootBlock(100, lamports(key(1), 5))
		for _, b := range append([]*ledger.Block{root}, chainOf(root, 20)...) {
			w.send(b)
		}
		gate, syncs := make(chan struct{}), 0
		replica := startMember(t, l, nil, Config{Shards: 1, OnSync: func(time.Duration) { syncs++; <-gate }})
		synctest.Wait()
		if replica.Head() != nil {
			t.Error("shown before it was durable")
		}
		close(gate)
		same(t, "at the end", w.Engine, replica.Engine)
		if len(l.commits) != 21 || syncs != 2 {
			t.Errorf("%d commits took %d syncs, want 2", len(l.commits), syncs)
		}
		w.mustStop()
		replica.mustStop()
	})
}

// TestOnlyTheWriterFetches asks a node that follows for an account that is not held, and again when it writes.
func TestOnlyTheWriterFetches(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		l := newSharedLedger()
		u := newFakeNode(100, lamports(key(7), 70))
		var nodes [2]clusterNode
		for i := range nodes {
			c := onDisk(t, vfstest.NewMemory(), Config{Shards: 2, Fetcher: u})
			if err := c.Dir.BindCluster("the ledger", datadir.FactsOf(partial(), nil, false)); err != nil {
				t.Fatal(err)
			}
			nodes[i] = startMemberOf(t, l, newScript(partial()), c)
		}
		l.grant(nodes[0].member)
		synctest.Wait()
		root := rootBlock(100)
		nodes[0].send(root, status(root, ledger.StatusConfirmed))
		_, _, err := nodes[1].Account(ledger.Query{}, key(7))
		if why, _ := absence(err); why.Absence != ledger.AccountNotIndexed || u.questions() != 0 {
			t.Errorf("one that follows answers %v, and asked %d times", err, u.questions())
		}
		l.grant(nodes[1].member)
		synctest.Wait()
		nodes[1].mustAnswer(ledger.Query{}, key(7), 70)
		nodes[1].mustStop()
		_ = nodes[0].stop()
	})
}

func second[A, B any](_ A, _ B, err error) error { return err }

// TestFollowThatEnds has the log become one that cannot be followed, at the start and later.
func TestFollowThatEnds(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		l := newSharedLedger()
		w := writer(t, l, Config{Shards: 2})
		replica := startMember(t, l, nil, Config{Shards: 1})
		root := rootBlock(100, lamports(key(1), 5))
		w.send(root)
		replica.fails = errLost
		w.send(child(root, 101, 0))
		mustShow(t, replica.Engine, 101)
		if why := replica.Status().Unhealthy; !strings.Contains(why, "cannot be followed") || strings.Contains(why, "10.0.0.1") {
			t.Errorf("health says %q", why)
		}
		disk := vfstest.NewMemory()
		c := onDisk(t, disk, Config{Shards: 1})
		other := startMember(t, l, nil, c)
		synctest.Wait()
		other.mustStop()
		c.Dir.Close()
		l.commits, l.first = l.commits[:1], l.first[:1]
		shortened := startMember(t, l, nil, onDisk(t, disk, Config{Shards: 1}))
		<-shortened.ended
		if shortened.err == nil || !strings.Contains(shortened.err.Error(), "shortened") {
			t.Errorf("a shortened log: %v", shortened.err)
		}
		w.mustStop()
		replica.mustStop()
	})
}

func TestHealthFailsWhileTheNodeLags(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		l := newSharedLedger()
		w := writer(t, l, Config{Shards: 2})
		root := rootBlock(100, lamports(key(1), 5))
		w.send(root)
		disk := vfstest.NewMemory()
		c := onDisk(t, disk, Config{Shards: 1, MaxLag: 3 * time.Second})
		replica := startMember(t, l, nil, c)
		health := func(when, want string) {
			t.Helper()
			synctest.Wait()
			if why := replica.Status().Unhealthy; (why == "") != (want == "") || !strings.Contains(why, want) {
				t.Fatalf("%s: health says %q, want %q", when, why, want)
			}
			if a, _, err := replica.Account(ledger.Query{}, key(1)); err != nil || a.Lamports != 5 {
				t.Fatalf("%s: reads: %v, %v", when, a.Lamports, err)
			}
		}
		time.Sleep(time.Millisecond)
		health("caught up", "")
		replica.cutOff(true)
		time.Sleep(3 * time.Second)
		health("cut off for a moment", "")
		time.Sleep(time.Nanosecond)
		health("cut off", "behind the shared log: for 3s")
		replica.cutOff(false)
		health("back", "")
		replica.mustStop()
		c.Dir.Close()

		// One that starts apart from the log answers from what it holds, and is not ready.
		l.unreachable = true
		replica = startMember(t, l, nil, onDisk(t, disk, Config{Shards: 1}))
		health("started apart", "not caught up")
		time.Sleep(time.Hour)
		health("still apart", "not caught up")
		w.send(child(root, 101, 0))
		replica.cutOff(false)
		health("together", "")
		mustShow(t, replica.Engine, 101)
		time.Sleep(stallAfter + 1)
		health("nothing is written", "the shared log holds none that is newer")
		replica.mustStop()
		// A writer that cannot reach the log says so.
		w.cutOff(true)
		w.try(child(root, 102, 0))
		time.Sleep(defaultMaxLag + 1)
		if why := w.Status().Unhealthy; !strings.Contains(why, "shared log has not taken") {
			t.Errorf("the writer's health says %q", why)
		}
		w.mustStop()
	})
}
