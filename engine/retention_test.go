package engine

import (
	"testing"
	"testing/synctest"
	"time"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/bubble"
	"ledgerd/engine/sequencer"
	"ledgerd/snapshot/vfs/vfstest"
)

// TestRetentionPrunesOldBlocks follows chains longer than what is retained.
func TestRetentionPrunesOldBlocks(t *testing.T) {
	const much = 1 << 40
	size := with(child(rootBlock(100), 101, 0), signature(1)).SizeBytes()
	tests := map[string]struct {
		retention sequencer.Retention
		finalized int         // how many of the 30 blocks above the root
		floor     ledger.Slot // the lowest slot held, when slot 130 is the tip
	}{
		"nothing to prune":               {sequencer.Retention{Slots: 9000, Bytes: much}, 30, 100},
		"exactly what is held":           {sequencer.Retention{Slots: 31, Bytes: much}, 30, 100},
		"by slots":                       {sequencer.Retention{Slots: 10, Bytes: much}, 30, 121},
		"one slot":                       {sequencer.Retention{Slots: 1, Bytes: much}, 30, 130},
		"by bytes":                       {sequencer.Retention{Slots: 9000, Bytes: 10 * size}, 30, 121},
		"one byte":                       {sequencer.Retention{Slots: 9000, Bytes: 1}, 30, 130},
		"whichever is less":              {sequencer.Retention{Slots: 10, Bytes: 5 * size}, 30, 126},
		"nothing above finalized, slots": {sequencer.Retention{Slots: 10, Bytes: much}, 5, 105},
		"nothing above finalized, bytes": {sequencer.Retention{Slots: 9000, Bytes: 1}, 5, 105},
		"nothing finalized but the root": {sequencer.Retention{Slots: 1, Bytes: 1}, 0, 100},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				n := startNode(t, live(), Config{Shards: 3, Retention: tt.retention})
				defer n.mustStop()
				root := with(rootBlock(100), signature(100))
				blocks := chainOf(root, 30)
				n.send(root)
				for i, b := range blocks {
					n.send(with(b, signature(int(b.Slot))))
					if i < tt.finalized {
						n.send(status(b, ledger.StatusFinalized))
					}
				}
				if n.Head().Floor != tt.floor {
					t.Errorf("floor %d, want %d", n.Head().Floor, tt.floor)
				}
				for range 2 { // before the folds and after them
					checkHeld(t, n, tt.floor)
					time.Sleep(2 * foldAfter)
				}
				if held, want := n.Stats().Transactions, int(131-tt.floor); held != want {
					t.Errorf("%d transactions in memory after the folds, want %d", held, want)
				}
			})
		})
	}
}

// checkHeld asks for every block and transaction: those below the floor are pruned.
func checkHeld(t *testing.T, n *subject, floor ledger.Slot) {
	t.Helper()
	for slot := ledger.Slot(100); slot <= 130; slot++ {
		_, _, blockErr := n.Block(ledger.Query{}, slot)
		_, _, txErr := n.Transaction(ledger.Query{}, signature(int(slot)))
		block, blockGone := absence(blockErr)
		tx, txGone := absence(txErr)
		if slot >= floor {
			if blockErr != nil || txErr != nil {
				t.Errorf("slot %d: %v, %v, want both held", slot, blockErr, txErr)
			}
			continue
		}
		if !blockGone || block.Absence != ledger.SlotPruned || !txGone || tx.Absence != ledger.TransactionNotFound {
			t.Errorf("slot %d: %v, %v, want both pruned", slot, blockErr, txErr)
		}
	}
	all, more, _, err := n.Recent(ledger.Query{}, ledger.RecentRange{Limit: 1000})
	if err != nil || more || len(all) != int(131-floor) || all[len(all)-1].Slot != floor {
		t.Errorf("recent: %d transactions, more %v, %v, want those down to slot %d", len(all), more, err, floor)
	}
}

// TestTransactionsOfUndoneBlocksGo undoes a block: a signature that both branches have is found in the block on the
// chain, and what only the undone one has leaves the memory.
func TestTransactionsOfUndoneBlocksGo(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		n := startNode(t, live(), Config{Shards: 2})
		defer n.mustStop()
		root := rootBlock(100)
		undone := with(child(root, 101, 1), signature(1), signature(2))
		tip := with(child(root, 102, 0), signature(1))
		n.send(root, undone)
		if a, _, err := n.Transaction(ledger.Query{}, signature(2)); err != nil || a.Transaction.Slot != 101 {
			t.Errorf("before the rollback: %v", err)
		}
		n.send(tip, child(tip, 103, 0))
		for range 2 { // before the fold and after it
			if a, _, err := n.Transaction(ledger.Query{}, signature(1)); err != nil || a.Transaction.Slot != 102 {
				t.Errorf("a signature on two branches: %v", err)
			}
			if _, _, err := n.Transaction(ledger.Query{}, signature(2)); err == nil {
				t.Error("a transaction of the undone block is found")
			}
			n.send(status(tip, ledger.StatusFinalized))
			time.Sleep(2 * foldAfter)
			synctest.Wait()
		}
		if held := n.Stats().Transactions; held != 1 {
			t.Errorf("%d transactions in memory, want 1", held)
		}
	})
}

// TestTombstonesExpire closes an account: the memory of it stays as many slots as blocks do.
func TestTombstonesExpire(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		n := startNode(t, live(), Config{Shards: 2, Retention: sequencer.Retention{Slots: 20, Bytes: 1 << 40}})
		defer n.mustStop()
		root := rootBlock(100, lamports(key(7), 5), lamports(key(8), 5))
		parent := child(root, 101, 0, lamports(key(7), 0), lamports(key(8), 0), lamports(key(8), 6))
		n.send(root, parent)
		for _, b := range chainOf(parent, 30) {
			n.send(b)
			n.send(status(b, ledger.StatusFinalized))
			time.Sleep(2 * foldAfter)
			_, _, err := n.Account(at(ledger.Finalized), key(7))
			why, ok := absence(err)
			want := ledger.NotFoundError{Absence: ledger.AccountNotFound}
			if b.Slot <= 101+20 {
				want = ledger.NotFoundError{Absence: ledger.AccountClosed, Slot: 101}
			}
			if !ok || why != want {
				t.Errorf("finalized at slot %d: %v, want %v", b.Slot, err, &want)
			}
			if a, _, err := n.Account(ledger.Query{}, key(8)); err != nil || a.Lamports != 6 {
				t.Errorf("an account that was opened again: %d lamports, %v", a.Lamports, err)
			}
		}
	})
}

// TestEventsThatLeadToNothingPruneNothing restarts a node with less retention behind a snapshot
// that no record follows: until a head with a new floor is shown, no block below it may go.
func TestEventsThatLeadToNothingPruneNothing(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		disk := vfstest.NewMemory()
		n, root := diskNode(t, disk, Config{})
		blocks := chainOf(root, 30)
		for _, b := range blocks {
			n.send(with(b, signature(int(b.Slot))), status(b, ledger.StatusFinalized))
		}
		n.send(&ledger.BaseState{Slot: 130, Accounts: []ledger.AccountWrite{lamports(key(7), 7)}})
		n.mustStop()
		n.config.Dir.Close()
		n = startNode(t, live(), onDisk(t, disk, Config{Shards: 2, Retention: sequencer.Retention{Slots: 5, Bytes: 1 << 40}}))
		synctest.Wait()
		defer n.mustStop()
		n.send(blocks[29]) // shown again: it leads to nothing
		time.Sleep(2 * foldAfter)
		synctest.Wait()
		for slot := n.Head().Floor; slot <= 130; slot++ {
			if _, _, err := n.Block(ledger.Query{}, slot); err != nil {
				why, _ := absence(err)
				t.Errorf("slot %d, floor %d: %v (pruned is %v)", slot, n.Head().Floor, why.Absence, ledger.SlotPruned)
			}
		}
	})
}
