package engine

import (
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"ledgerd/engine/datadir"
	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/bubble"
	"ledgerd/snapshot/vfs"
	"ledgerd/snapshot/vfs/vfstest"
)

// followedScript returns a shared log that holds the script, and where that ends.
func followedScript(t *testing.T) (commits [][][]byte, first []ledger.Version, end *ledger.Head) {
	t.Helper()
	bubble.Test(t, func(t *testing.T) {
		l := newSharedLedger()
		s, _ := scripted()
		c, err := scriptConfig(t, vfstest.NewMemory(), 2)
		if err == nil {
			err = c.Dir.BindCluster("the ledger", datadir.FactsOf(live(), nil, false))
		}
		if err != nil {
			t.Fatal(err)
		}
		w := startMemberOf(t, l, s, c)
		l.grant(w.member)
		time.Sleep(20 * time.Second)
		synctest.Wait()
		end = w.Head()
		w.mustStop()
		commits, first = l.commits, l.first
	})
	return commits, first, end
}

// TestEveryDiskCallOfAFollowerMayFail repeats one run of a replica with a failure at every single disk call. Whatever
// that leaves, a start goes on with the shared log to the same end, and nothing was shown that is not in it.
func TestEveryDiskCallOfAFollowerMayFail(t *testing.T) {
	commits, first, want := followedScript(t)
	stride := 17
	if testing.Short() {
		stride = 97
	}
	for i, f := range faults() {
		t.Run(f.name, func(t *testing.T) {
			for call, hit := 1+i, true; hit; call += stride {
				bubble.Test(t, func(t *testing.T) {
					l := newSharedLedger()
					l.commits, l.first = commits, first
					hit = failFollower(t, l, f, call, want)
				})
				if t.Failed() {
					t.Fatalf("call %d", call)
				}
			}
		})
	}
}

// failFollower reports whether there was such a call.
func failFollower(t *testing.T, l *sharedLedger, f fault, call int, want *ledger.Head) (hit bool) {
	follow := func(disk vfs.FS) (n clusterNode, err error) {
		c, err := scriptConfig(t, disk, 2)
		if err != nil {
			return n, err
		}
		defer c.Dir.Close()
		if err := c.Dir.BindCluster("the ledger", datadir.FactsOf(live(), nil, false)); err != nil {
			return n, err
		}
		n = startMemberOf(t, l, nil, c)
		time.Sleep(20 * time.Second)
		synctest.Wait()
		return n, n.stop()
	}
	memory := vfstest.NewMemory()
	f.plan.Call = call
	disk := vfstest.NewFaulty(memory, f.plan)
	n, err := follow(disk)
	if n.subject != nil {
		checkHeads(t, l, n.published)
	}
	if !disk.Hit() {
		if err != nil {
			t.Error(err)
		}
		return false
	}
	if f.share >= 0 {
		memory = memory.Crash(f.share, uint64(call))
	}
	if f.plan.Err == syscall.ENOSPC && err == nil && !syncFailed(disk) {
		if err := sameEnd(n.Head(), want); err != nil {
			t.Errorf("a disk that was full once: %v", err)
		}
	}
	if n, err = follow(memory); err != nil {
		t.Errorf("it does not go on: %v", err)
		return true
	}
	if err := sameEnd(n.Head(), want); err != nil {
		t.Error(err)
	}
	checkHeads(t, l, n.published)
	return true
}
