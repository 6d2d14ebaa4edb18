package engine

import (
	"fmt"
	"testing"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/bubbletest"
	"ledgerd/engine/ledger/ledgertest"
	"ledgerd/shard"
)

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
