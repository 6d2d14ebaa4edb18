package snapshot

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/bubbletest"
	"ledgerd/engine/ledger/ledgertest"
	"ledgerd/snapshot/vfs"
	"ledgerd/snapshot/vfs/vfstest"
)

const archiveDir = "data/history"

func openTestArchive(t testing.TB, disk vfs.FS, limit int64) *Archive {
	t.Helper()
	a, err := OpenArchive(disk, archiveDir, limit, ours, quiet)
	must(t, err)
	return a
}

// ours is what the ledger of the test is known by.
func ours() []string { return []string{"ours", "its root"} }

func later() Asker { return Asker{Deadline: time.Now().Add(time.Minute)} }

// archived checks that an archive answers each question as a list of blocks says, of which it must hold those from a slot on, and
// returns the first difference. Damaged: what it lacks is not wrong.
func archived(a *Archive, blocks []HeldBlock, damaged bool) error {
	held := map[ledger.Slot]*ledger.Block{}
	for _, h := range blocks {
		b, err := a.Block(h.Block.Slot-min(h.Block.Slot, 1), later())
		switch {
		case damaged && (errors.Is(err, ErrLost) || err == nil && (b.Block == nil || b.Block.Slot > h.Block.Slot)):
			continue
		case err != nil || !reflect.DeepEqual(b, h):
			return fmt.Errorf("block at slot %d: %+v, %v, not %+v", h.Block.Slot, b, err, h)
		}
		held[h.Block.Slot] = h.Block
		for i := range h.Block.Transactions {
			want := &h.Block.Transactions[i]
			got, err := a.Transaction(&want.Signature, h.Block.Slot+1, later())
			if damaged && err == nil && got == nil {
				continue
			}
			if err != nil || !reflect.DeepEqual(got, want) {
				return fmt.Errorf("transaction %d at slot %d: %+v, %v, not %+v", i, h.Block.Slot, got, err, want)
			}
			if got, err := a.Transaction(&want.Signature, h.Block.Slot, later()); got != nil || err != nil {
				return fmt.Errorf("a transaction at slot %d is held below it: %+v, %v", h.Block.Slot, got, err)
			}
		}
	}
	for _, oldestFirst := range []bool{false, true} {
		for _, key := range []ledger.Opt[ledger.Pubkey]{{}, ledger.Some(testKey(1)), ledger.Some(testKey(int(blocks[len(blocks)-1].Block.Slot))), ledger.Some(testKey(1 << 20))} {
			first, last := blocks[len(blocks)/4].Block.Slot, blocks[len(blocks)-1].Block.Slot-1
			var got []ledger.Slot
			err := a.Walk(key, first, last, oldestFirst, later(), func(c Candidate) (bool, error) {
				b, err := c.Load()
				if err == nil && !reflect.DeepEqual(b, held[c.Slot]) && !damaged {
					err = fmt.Errorf("a walk comes to %+v at slot %d", b, c.Slot)
				}
				if c.Named {
					got = append(got, c.Slot)
				}
				return true, err
			})
			if err != nil && !(damaged && errors.Is(err, ErrDamaged)) {
				return err
			}
			if !oldestFirst {
				slices.Reverse(got)
			}
			if !slices.IsSorted(got) {
				return fmt.Errorf("a walk visits %v", got)
			}
			for slot, b := range held {
				naming := !key.Known || slices.ContainsFunc(b.Transactions, func(t ledger.Transaction) bool { return slices.Contains(t.Accounts, key.Value) })
				if slot >= first && slot <= last && naming && !slices.Contains(got, slot) && !damaged {
					return fmt.Errorf("a walk from %d to %d passes over slot %d, of %v", first, last, slot, got)
				}
			}
		}
	}
	return nil
}

// TestArchiveHoldsWhatItsBoundAllows adds blocks in groups of random sizes, with restarts between, until runs were joined twice over, and drops all
// of them again. Of a bound below one run the newest run stays.
func TestArchiveHoldsWhatItsBoundAllows(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for limit, last := range map[int64]ledger.Slot{1 << 30: 600, 40_000: 1200, 1: 20} {
		disk, blocks := vfstest.NewMemory(), testBlocks(0, last)
		a := openTestArchive(t, disk, limit)
		b, err := a.Block(3, later())
		must(t, err)
		ledgertest.Equal(t, []ledger.Slot{a.Next(), a.From(9)}, []ledger.Slot{0, 9}, "the slot after the newest of nothing, and from which on it is held; block %v", b)
		for at := 0; at < len(blocks); {
			n := min(1+random.IntN(3), len(blocks)-at)
			must(t, a.Add(t.Context(), blocks[at:at+n], 1<<40, Pace{}))
			at += n
			if random.IntN(40) == 0 || at == len(blocks) {
				a = openTestArchive(t, disk, limit)
				must(t, archived(a, blocks[a.From(a.Next())/2:at], false))
			}
			names, err := disk.List(archiveDir)
			must(t, err)
			s := a.Stats()
			if s.Runs > 5*mergedRuns || s.Runs > 1 && s.Bytes > limit || s.Runs != len(names) || s.MemoryBytes < int64(3*s.Runs)*int64(unsafe.Sizeof(chunk{})) || a.Next() != blocks[at-1].Block.Slot+1 {
				t.Fatalf("up to slot %d of a bound of %d: %+v, %d files, the slot after the newest is %d", blocks[at-1].Block.Slot, limit, s, len(names), a.Next())
			}
		}
		ledgertest.Equal(t, a.From(math.MaxUint64), math.MaxUint64, "from which slot on history reaches the last slot there is")
		from := a.From(a.Next())
		ledgertest.Equal(t, []bool{from > 0, from > last*11/12}, []bool{limit < 1<<30, limit == 1}, "what is dropped of a bound of %d: below slot %d of %d", limit, from, last)
		for a.Shrink() > 0 {
			if first := a.First(); first <= from {
				t.Fatalf("the oldest block is at slot %d, after slot %d", first, from)
			} else {
				from = first
			}
		}
		ledgertest.Equal(t, disk.Paths(), []string{}, "files")
	}
}

// addAll adds blocks in small groups, as a node does: what fails is tried again with the next group. It returns how many were added
// without an error.
func addAll(t *testing.T, disk vfs.FS, blocks []HeldBlock) (added int) {
	a, err := OpenArchive(disk, archiveDir, 1<<30, ours, quiet)
	if err != nil {
		return 0
	}
	for n := 2; n <= len(blocks); n += 2 {
		from := slices.IndexFunc(blocks, func(b HeldBlock) bool { return b.Block.Slot >= a.Next() })
		if from >= 0 && from < n && a.Add(t.Context(), blocks[from:n], 1<<40, Pace{}) == nil {
			added = n
		}
	}
	return added
}

// Whatever call fails, or is the last one before a crash, all that was added is held after a restart, and no unfinished file. So it is after a power cut
// instead, and after one that follows the restart.
func TestAnyFailedCallLeavesAWholeArchive(t *testing.T) {
	blocks := testBlocks(0, 38)
	vfstest.EveryCall(t, 17, vfstest.NewMemory(), map[string]vfstest.Plan{
		"EIO":          {Err: syscall.EIO, LoseOnSyncFailure: true},
		"short write":  {Fault: vfstest.Short, Kinds: vfstest.KindWriteAt},
		"nothing goes": {Err: syscall.EIO, Lasting: true, Kinds: vfstest.KindRemove},
		"a crash":      {Fault: vfstest.Crash},
	}, func(t *testing.T, disk *vfstest.Memory, faulty *vfstest.Faulty, plan vfstest.Plan) {
		added := addAll(t, faulty, blocks)
		held := func(what string, disk *vfstest.Memory) {
			a := openTestArchive(t, disk, 1<<30)
			n := max(added, int(a.Next()+1)/2)
			if n > 0 {
				ledgertest.Mustf(t, archived(a, blocks[:n], false), "at call %d, %s", plan.Call, what)
			}
		}
		for seed := range uint64(3) {
			held("a power cut", disk.Crash(0.5, seed))
		}
		held("a restart", disk)
		ledgertest.MustHold(t, added >= len(blocks) || faulty.Hit(), "without a fault %d blocks are held", added)
		for seed := range uint64(3) {
			held("a restart and a power cut", disk.Crash(0.5, seed))
		}
		addAll(t, disk, blocks)
		ledgertest.Mustf(t, archived(openTestArchive(t, disk, 1<<30), blocks, false), "after call %d and a restart", plan.Call)
		for _, name := range disk.Paths() {
			ledgertest.MustHold(t, !strings.HasSuffix(name, vfs.TemporarySuffix), "%s is left", name)
		}
	})
}

// threeRuns returns an archive of three runs of five blocks each, and the names of its files.
func threeRuns(t *testing.T) (disk *vfstest.Memory, a *Archive, blocks []HeldBlock, names []string) {
	t.Helper()
	disk = vfstest.NewMemory()
	a, blocks = openTestArchive(t, disk, 1<<30), testBlocks(0, 28)
	for some := range slices.Chunk(blocks, 5) {
		must(t, a.Add(t.Context(), some, 1<<40, Pace{}))
	}
	names, err := disk.List(archiveDir)
	must(t, err)
	return disk, a, blocks, names
}

// A walk cuts a chunk into its blocks once. Cut for each block, a day of blocks without transactions took 140 times what listing their slots takes, and
// met its deadline.
func TestAWalkCutsAChunkIntoItsBlocksOnce(t *testing.T) {
	_, a, _, _ := threeRuns(t)
	for _, oldestFirst := range []bool{false, true} {
		must(t, a.with((*a.runs.Load())[0], func(r *runReader) error {
			loaded := 0
			err := r.walk(ledger.Opt[ledger.Pubkey]{}, 0, math.MaxUint64, oldestFirst, func(c Candidate) error {
				_, err := c.Load()
				clear(r.raw[:blockHeadBytes]) // cut again, the chunk is damaged
				loaded++
				return err
			})
			ledgertest.Equal(t, []int{loaded, len(r.run.of(blockChunk))}, []int{5, 1}, "blocks that are loaded, and chunks of them")
			return err
		}))
	}
}

// TestRunsAreJoinedWhileTheyAreRead joins seven runs with an eighth when a question reads a file: the answers are right all the same.
func TestRunsAreJoinedWhileTheyAreRead(t *testing.T) {
	blocks := testBlocks(0, 2*mergedRuns-2)
	for call := range vfstest.Calls(3) {
		disk := vfstest.NewFaulty(vfstest.NewMemory(), vfstest.Plan{})
		var reads atomic.Int64 // runs that are joined are read back by several at once
		a := openTestArchive(t, disk, 1<<30)
		for n := range mergedRuns - 1 {
			must(t, a.Add(t.Context(), blocks[n:n+1], 1<<40, Pace{}))
		}
		disk.Arm(vfstest.Plan{Before: func(c vfstest.Call) {
			if c.Kind != vfstest.KindReadAt {
				return
			}
			if reads.Add(1) == int64(call) {
				must(t, a.Add(t.Context(), blocks[mergedRuns-1:], 1<<40, Pace{}))
				ledgertest.Equal(t, a.Stats().Runs, 1, "runs, once they are joined")
			}
		}})
		ledgertest.Mustf(t, archived(a, blocks[:mergedRuns-1], false), "joined at the %d. read", call)
		if reads.Load() < int64(call) {
			return
		}
	}
}

// countedDisk counts the files that are open for reading.
type countedDisk struct {
	vfs.FS
	open atomic.Int64 // several goroutines read back what was written
}

type countedFile struct {
	vfs.File
	disk *countedDisk
}

func (d *countedDisk) Open(name string) (vfs.File, error) {
	f, err := d.FS.Open(name)
	if err != nil {
		return nil, err
	}
	d.open.Add(1)
	return &countedFile{f, d}, nil
}

func (f *countedFile) Close() error {
	f.disk.open.Add(-1)
	return f.File.Close()
}

// TestFilesOfRunsAreOpen while they are used, and no others are: runs are joined, the archive is closed and opened again, and a
// run is dropped.
func TestFilesOfRunsAreOpen(t *testing.T) {
	disk := &countedDisk{FS: vfstest.NewMemory()}
	a := openTestArchive(t, disk, 1<<30)
	open := func(when string) {
		t.Helper()
		ledgertest.Equal(t, disk.open.Load(), int64(a.Stats().Runs), "files that are open, "+when)
	}
	for n := range ledger.Slot(2 * mergedRuns) {
		must(t, a.Add(t.Context(), testBlocks(10*n, 10*n+8), 1<<40, Pace{}))
		open("after an Add")
	}
	a.Close()
	open("after Close")
	a = openTestArchive(t, disk, 1<<30)
	open("after a restart")
	a.Shrink()
	open("after a run is dropped")
}

// TestNobodyWaitsForAList who asks for one block or transaction: lists that read, and wait for that, have a lane of their own.
func TestNobodyWaitsForAList(t *testing.T) {
	bubbletest.Test(t, func(t *testing.T) {
		_, a, blocks, _ := threeRuns(t)
		release := make(chan struct{})
		var lists sync.WaitGroup
		for range mostWaiting {
			lists.Go(func() {
				must(t, a.Walk(ledger.Opt[ledger.Pubkey]{}, 0, 28, false, Asker{Deadline: time.Now().Add(time.Hour)}, func(Candidate) (bool, error) {
					<-release
					return true, nil
				}))
			})
		}
		synctest.Wait()
		for _, b := range blocks {
			_, err := a.Block(b.Block.Slot, Asker{Deadline: time.Now().Add(time.Second)})
			must(t, err)
			_, err = a.Transaction(&b.Block.Transactions[0].Signature, 30, Asker{Deadline: time.Now().Add(time.Second)})
			must(t, err)
		}
		close(release)
		lists.Wait()
	})
}

// TestRunThatCannotBeReadIsLost lets a sector of one run be bad: its blocks are lost, later runs are joined, and the bound holds. It holds
// too where no run can be joined.
func TestRunThatCannotBeReadIsLost(t *testing.T) {
	const limit = 200_000
	disk, _, _, names := threeRuns(t)
	faulty := vfstest.NewFaulty(disk, vfstest.Plan{})
	a := openTestArchive(t, faulty, limit)
	faulty.Arm(vfstest.Plan{Call: 1, Lasting: true, Err: syscall.EIO, Kinds: vfstest.KindReadAt, Name: names[1]})
	slot := ledger.Slot(30)
	for ; slot < 3000; slot += 10 {
		must(t, a.Add(t.Context(), testBlocks(slot, slot+8), 1<<40, Pace{}))
		if s := a.Stats(); s.Bytes > limit || s.Runs > 4*mergedRuns {
			t.Fatalf("at slot %d: %+v", slot, s)
		}
	}
	for ; slot < 6000; slot += 10 {
		// The second file that is made is of runs that are joined.
		faulty.Arm(vfstest.Plan{Call: 2, Lasting: true, Err: syscall.EIO, Kinds: vfstest.KindCreate})
		_ = a.Add(t.Context(), testBlocks(slot, slot+8), 1<<40, Pace{})
		if s := a.Stats(); s.Bytes > limit {
			t.Fatalf("at slot %d, where no run is joined: %+v", slot, s)
		}
	}
}
