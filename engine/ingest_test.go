package engine

import (
	"fmt"
	"testing"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/bubbletest"
	"ledgerd/engine/ledger/ledgertest"
	"ledgerd/shard"
)

// TestIngestPausesWhileTooMuchIsUnfinalized shows more than a quarter of the memory of blocks without finality: the newest are held back
// until a status makes room, and then nothing of them is lost. Ingest stops when even those held back are more than a sixteenth, or when
// the input ends while some are.
func TestIngestPausesWhileTooMuchIsUnfinalized(t *testing.T) {
	const limit, most, heldBack = 64 << 20, 32, 8 // blocks that are taken, and that are held back
	root := rootBlock(100)
	show := func(n *subject, parent *ledger.Block, blocks int) *ledger.Block {
		for _, b := range chainOf(parent, blocks) {
			parent = sized(b, limit/4/most+8<<10)
			n.try(parent)
		}
		return parent
	}
	begin := func(t *testing.T, info ledger.SourceInfo) (n *subject, last *ledger.Block) {
		n = startNode(t, info, Config{Shards: 2, MemoryLimit: limit})
		n.send(root, status(root, ledger.StatusFinalized)) // it speaks of finality, and stops to
		return n, show(n, root, most)
	}
	bubbletest.Test(t, func(t *testing.T) {
		n, last := begin(t, live())
		n.mustSay()
		held := chainOf(last, 3)
		n.send(events(held...)...)
		n.mustSay("unfinalized")
		n.mustStand(last.Slot)                     // where ingest is held back
		n.send(status(held[2], ledger.StatusDead)) // of a block that is held back
		n.send(&ledger.SlotStatus{Slot: root.Slot + 3, Status: ledger.StatusFinalized})
		n.mustSay()
		n.mustStand(held[1].Slot)
		next := child(held[1], held[2].Slot+1, 0)
		n.send(next)
		last = show(n, next, 3+heldBack) // three are taken
		n.mustSay("unfinalized")
		n.mustStand(next.Slot + 3)
		show(n, last, 1)
		n.mustSay("ingest stopped")
		n.mustStand(next.Slot + 3)
	})
	bubbletest.Test(t, func(t *testing.T) {
		n, last := begin(t, finite())
		show(n, last, 1)
		n.endInput()
		n.mustSay("input ended with 1 events held back")
	})
}

// F46: TestBrokenShardEndsRun breaks a shard's goroutine: Run ends with an error that names it,
// whatever waits for it gives up.
func TestBrokenShardEndsRun(t *testing.T) {
	bubbletest.Test(t, func(t *testing.T) {
		n := startNode(t, live(), Config{Shards: 3})
		root := rootBlock(100, lamports(key(1), 1), lamports(key(2), 1), lamports(key(3), 1), lamports(key(4), 1))
		n.send(root)
		broken := shard.Of(new(key(1)).Prefix(), 3)
		n.shards[broken].ApplyBase(shard.Point{Version: 9}, &ledger.BaseState{}, true) // below what is held
		n.try(child(root, 101, 0))
		ledgertest.ErrorSays(t, n.end(), fmt.Sprintf("shard %d broke", broken), "Run")
		_, _, err := n.Accounts(ledger.Query{}, []ledger.Pubkey{key(1), key(2), key(3), key(4)})
		ledgertest.ErrorIs(t, err, ledger.ErrUnavailable, "a query afterwards")
	})
}
