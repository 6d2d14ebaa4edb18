package engine

import (
	"errors"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"ledgerd/engine/ledger"
	"ledgerd/engine/sequencer"
	"ledgerd/snapshot/vfs/vfstest"
)

// archiving is a node whose memory holds few blocks, and whose archive gets each few of them.
func archiving() Config {
	return Config{Retention: sequencer.Retention{Slots: 5, Bytes: 1 << 30}, HistoryBytes: 1 << 30, HistoryBlocks: 4, MinFreeBytes: 1 << 10}
}

// TestHistoryKeepsUpWithBlocksThatComeFast shows a block a millisecond to a node whose disk takes its time for each file, and whose memory holds
// few of them: what waits is written at once, and no block is lost.
func TestHistoryKeepsUpWithBlocksThatComeFast(t *testing.T) {
	c := archiving()
	c.Retention.Bytes = 300 << 10
	diskTest(t, c, func(t *testing.T, _ *vfstest.Memory, n *subject, block *ledger.Block) {
		n.disk.Arm(vfstest.Plan{Before: func(c vfstest.Call) {
			if c.Kind == vfstest.KindCreate && strings.Contains(c.Name, "run-") {
				time.Sleep(50 * time.Millisecond)
			}
		}})
		for range 3000 {
			block = n.finalize(block)
			time.Sleep(time.Millisecond)
		}
		pause(2 * archiveRetry)
		if from := n.Stats().HistoryFrom; from != 100 || n.Head().Floor < block.Slot-200 {
			t.Errorf("history is held from slot %d on, memory from %d, and the newest is %d", from, n.Head().Floor, block.Slot)
		}
		n.mustStop()
	})
}

// TestWhatWaitedLongIsWrittenInParts lets the disk take no file of history while memory fills up, and then take them: none of them has more than
// a quarter of what memory holds.
func TestWhatWaitedLongIsWrittenInParts(t *testing.T) {
	c := archiving()
	c.Retention = sequencer.Retention{Slots: 1000, Bytes: 1 << 18}
	diskTest(t, c, func(t *testing.T, _ *vfstest.Memory, n *subject, block *ledger.Block) {
		n.disk.Arm(vfstest.Plan{Call: 1, Lasting: true, Kinds: vfstest.KindCreate, Name: "run-", Err: syscall.EIO})
		for range 1000 {
			block = n.finalize(block)
		}
		held := sequencer.Blocks(n.Head())
		n.disk.Arm(vfstest.Plan{Call: 2, Lasting: true, Kinds: vfstest.KindCreate, Name: "run-", Err: syscall.EIO})
		pause(2 * archiveRetry)
		bytes := 0
		for _, b := range held[:held.FirstFrom(n.Archive().Next())] {
			bytes += b.SizeBytes()
		}
		if limit := c.Retention.Bytes / 4; bytes < limit || bytes > limit+limit/8 {
			t.Errorf("%d bytes were written at once, want %d", bytes, limit)
		}
		n.mustStop()
	})
}

// TestPagesOfHistoryEndWhereTheDiskIsSlow reads all transactions of an address, and those of one that nothing names, page by page from a disk that
// takes its time: pages are short, none is lost, and each goes on behind the one before. There is the time to read the filters of the blocks without
// transactions that are between, and not these blocks.
func TestPagesOfHistoryEndWhereTheDiskIsSlow(t *testing.T) {
	diskTest(t, archiving(), func(t *testing.T, _ *vfstest.Memory, n *subject, block *ledger.Block) {
		for i := range 60 {
			next := chainOf(block, 1)[0]
			next.AddTransaction(ledger.Transaction{Signature: signature(1000 + i), Accounts: []ledger.Pubkey{key(1 + i%3)}})
			n.send(next, status(block, ledger.StatusFinalized))
			for block = next; i == 40 && block.Slot < next.Slot+100; {
				block = n.finalize(block)
			}
		}
		pause(2 * archiveRetry)
		n.disk.Arm(vfstest.Plan{Before: func(c vfstest.Call) {
			if c.Kind == vfstest.KindReadAt && strings.Contains(c.Name, "run-") {
				time.Sleep(queryDeadline / 40) // a quarter as many chunks have the filters, and as many the blocks
			}
		}})
		for _, oldestFirst := range []bool{false, true} {
			r, pages, found := ledger.TransactionRange{Address: ledger.Some(key(2)), Limit: 100, OldestFirst: oldestFirst}, 0, map[ledger.Signature]bool{}
			for more := true; more; pages++ {
				p, _, err := n.Transactions(ledger.Query{}, r)
				must(t, err)
				for _, tx := range p.Transactions {
					if found[tx.Signature] {
						t.Fatalf("%s is in two pages", tx.Signature)
					}
					found[tx.Signature] = true
				}
				if more = p.Next.Known; oldestFirst {
					r.After = p.Next
				} else {
					r.Before = p.Next
				}
			}
			if len(found) != 20 || pages < 3 {
				t.Errorf("oldest first %v: %d transactions on %d pages", oldestFirst, len(found), pages)
			}
		}
		n.mustStop()
	})
}

// TestFilesAboveAHoleStopNoHistory copies the newest file of a node that is ahead into the history of one that is not: what lies between is
// written all the same.
func TestFilesAboveAHoleStopNoHistory(t *testing.T) {
	diskTest(t, archiving(), func(t *testing.T, disk *vfstest.Memory, n *subject, block *ledger.Block) {
		show := func(blocks int) {
			for range blocks {
				block = n.finalize(block)
				pause(10 * time.Millisecond)
			}
			pause(2 * archiveRetry)
		}
		show(50)
		n.close()
		behind, at := disk.Clone(), block
		n, _ = diskNode(t, disk, archiving())
		show(100)
		n.close()
		paths := slices.DeleteFunc(disk.Paths(), func(path string) bool { return !strings.Contains(path, "/run-") })
		newest := paths[len(paths)-1]
		content, err := disk.ReadFile(newest)
		must(t, errors.Join(err, behind.WriteFile(newest, content)))
		block = at
		n, _ = diskNode(t, behind, archiving())
		show(200)
		if from := n.Stats().HistoryFrom; from != 100 || n.Head().Floor < block.Slot-20 {
			t.Errorf("history is held from slot %d on, memory from %d, and the newest is %d", from, n.Head().Floor, block.Slot)
		}
		n.mustStop()
	})
}
