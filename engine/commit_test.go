package engine

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"ledgerd/engine/ingest"
	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/bubbletest"
	"ledgerd/engine/ledger/ledgertest"
	"ledgerd/snapshot/vfs/vfstest"
)

// gated starts a node whose commits are durable when turn is called, one at a time, and then waits until nothing moves.
func gated(t *testing.T) (n *subject, turn func()) {
	t.Helper()
	turns := make(chan struct{})
	c := onDisk(t, vfstest.NewMemory(), Config{Shards: 2, OnSync: func(time.Duration) { <-turns }})
	n = startNode(t, live(), c)
	t.Cleanup(func() { close(turns) }) // before the node stops
	return n, func() {
		turns <- struct{}{}
		synctest.Wait()
	}
}

// TestNextBatchIsAppliedDuringACommit holds commits back for a known time, shows a fork and more events than a batch
// holds, and lets one commit after the other end. What they hold is applied before, unseen by any query, health check or
// publication, and appears batch by batch. Each publication tells when the first event of its batch came.
func TestNextBatchIsAppliedDuringACommit(t *testing.T) {
	bubbletest.Test(t, func(t *testing.T) {
		n, turn := gated(t)
		root := rootBlock(100, lamports(key(1), 100))
		n.send(root)
		main := chainOf(root, ingest.BatchEvents)
		lost := child(main[0], 103, 1, lamports(key(1), 7), lamports(key(9), 7))
		time.Sleep(30 * time.Millisecond)
		n.send(main[0], lost)
		time.Sleep(5 * time.Millisecond)
		n.send(events(main[1:]...)...) // main[3] undoes the fork
		ledgertest.Equal(t, n.Stats().Blocks, uint64(1+ingest.BatchEvents), "blocks taken during the first commit, which are a batch more,")
		if n.Head() != nil || len(n.published) != 0 || n.Status().Unhealthy == "" {
			t.Errorf("%d publications, health %q before the first commit ended", len(n.published), n.Status().Unhealthy)
		}
		if _, v, err := n.Account(ledger.Query{}, key(1)); !errors.Is(err, ledger.ErrUnavailable) || v.Head != nil {
			t.Errorf("an account before the commit returned: %v, want unavailable", err)
		}
		for i, want := range []struct {
			slot  ledger.Slot
			after time.Duration
		}{{100, 45 * time.Millisecond}, {main[ingest.BatchEvents-2].Slot, 25 * time.Millisecond}, {main[ingest.BatchEvents-1].Slot, 20 * time.Millisecond}} { // the second batch was full
			time.Sleep(10 * time.Millisecond)
			turn()
			n.mustStand(want.slot)
			p := n.published[i]
			ledgertest.Equal(t, p.Head.Published.Sub(p.ReceivedAt), want.after, "publication %d was visible after its first block came by", i)
		}
		ledgertest.Equal(t, len(n.published), 3, "publications, of as many commits")
	})
}

// TestBatchIsFullOfLargeBlocks holds a commit back and shows three blocks of 40 MiB of data each, of which one fills a batch.
func TestBatchIsFullOfLargeBlocks(t *testing.T) {
	bubbletest.Test(t, func(t *testing.T) {
		n, turn := gated(t)
		root := rootBlock(100)
		n.send(root)
		data := ledger.NewData(make([]byte, ledger.MaxDataBytes))
		chain := chainOf(root, 3)
		for _, b := range chain {
			for i := range 4 {
				b.Accounts = append(b.Accounts, ledger.AccountWrite{Pubkey: key(i), Lamports: 1, Owner: key(9), Known: ledger.FieldOwner | ledger.FieldData, Data: data})
			}
		}
		n.send(events(chain...)...)
		for taken := range uint64(3) {
			if got := n.Stats().Blocks; got != 2+taken {
				t.Fatalf("%d blocks were taken before commit %d ends, want %d", got, taken, 2+taken)
			}
			turn()
		}
		turn()
		ledgertest.Equal(t, n.Head().Tip(ledger.Processed).Slot, chain[2].Slot, "the slot that is shown")
	})
}
