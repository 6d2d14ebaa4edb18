package engine

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/bubble"
	"ledgerd/engine/ledger/ledgertest"
	"ledgerd/shard"
	"ledgerd/snapshot/vfs/vfstest"
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
	bubble.Test(t, func(t *testing.T) {
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
	bubble.Test(t, func(t *testing.T) {
		n, last := begin(t, finite())
		show(n, last, 1)
		n.endInput()
		n.mustSay("input ended with 1 events held back")
	})
}

// Accounts that a node is asked for come as they stand at its newest block. They wait for that block, which tells subscribers of each change.
func TestFetchedAccountsWaitForTheirBlock(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		n := startNode(t, live(), Config{Shards: 2})
		root := rootBlock(100, lamports(key(1), 100))
		blocks := chainOf(root, 4)
		other := child(blocks[1], 104, 9, lamports(key(1), 7))
		fetched := &ledger.BaseState{Slot: 103, After: 103, Accounts: []ledger.AccountWrite{lamports(key(1), 103), lamports(key(2), 5)}}
		n.send(root, status(root, ledger.StatusFinalized), fetched, blocks[0])
		n.mustStand(101)
		n.send(blocks[1], other, blocks[2])
		if _, _, err := n.Account(ledger.Query{}, key(2)); !errors.Is(err, ledger.ErrNotFound) {
			t.Errorf("an account is held before it is confirmed that the chain is where it was fetched: %v", err)
		}
		n.send(status(blocks[2], ledger.StatusConfirmed))
		n.mustStand(103)
		if a, _, err := n.Account(ledger.Query{}, key(2)); err != nil || a.Lamports != 5 {
			t.Errorf("%+v, %v", a, err)
		}
		told := map[ledger.Slot]ledger.Lamports{}
		for _, r := range n.records() {
			for _, u := range r.Updates {
				told[r.Slot] = u.Account.Lamports
			}
		}
		ledgertest.Equal(t, told[103], 103, "lamports that subscribers are told of block 103")
		n.mustStop()
	})
}

// TestReadiness asks before there is anything to answer from, and as it comes.
func TestReadiness(t *testing.T) {
	base := &ledger.BaseState{Slot: 50, Accounts: []ledger.AccountWrite{lamports(key(1), 5)}}
	type row struct {
		info   ledger.SourceInfo
		events []ledger.Event
		ends   bool
		want   error // nil: it is ready
		slot   ledger.Slot
	}
	bubble.Each(t, map[string]row{
		"nothing came":                               {live(), nil, false, ledger.ErrNoBlock, 0},
		"nothing came of a finite source":            {finite(), nil, false, ledger.ErrNoBlock, 0},
		"base state only":                            {live(), []ledger.Event{base}, false, ledger.ErrRecovering, 0},
		"base state and a block":                     {live(), []ledger.Event{base, rootBlock(100)}, false, nil, 100},
		"a finite source ended with nothing":         {finite(), nil, true, nil, 0},
		"a finite source ended with base state only": {finite(), []ledger.Event{base, &ledger.BaseState{Slot: 20}}, true, nil, 50},
	}, func(t *testing.T, tt row) {
		disk := vfstest.NewMemory()
		c := onDisk(t, disk, Config{Shards: 2})
		if err := New(c).Status().NotReady; err != ledger.ErrRecovering {
			t.Errorf("before it runs: %v", err)
		}
		startNode(t, tt.info, c).close() // what it leaves, without an event, is as fresh
		n := startNode(t, tt.info, onDisk(t, disk, Config{Shards: 2}))
		n.send(tt.events...)
		if tt.ends {
			n.endInput()
			time.Sleep(time.Hour) // a source that ended is never stalled
		}
		if s := n.Status(); (s.Unhealthy == "") != (tt.want == nil) || s.NotReady != tt.want {
			t.Errorf("status %+v, want %v", s, tt.want)
		}
		_, v, err := n.Account(ledger.Query{}, key(1))
		if tt.want != nil {
			if err != tt.want || !errors.Is(err, ledger.ErrUnavailable) {
				t.Errorf("an account before the node is ready: %v, want %v", err, tt.want)
			}
		} else if known := len(tt.events) > 0; known != (err == nil) || v.Tip().Slot != tt.slot {
			t.Errorf("an account: %v at slot %d, want slot %d", err, v.Tip().Slot, tt.slot)
		}
		if tt.want == nil && tt.slot != 100 {
			_, _, err := n.LatestBlock(ledger.Query{})
			if why, ok := absence(err); !ok || why.Absence != ledger.NoBlockYet {
				t.Errorf("latest block: %v, want that there is none yet", err)
			}
		}
	})
}

// F46: TestBrokenShardEndsRun breaks a shard's goroutine: Run ends with an error that names it,
// whatever waits for it gives up.
func TestBrokenShardEndsRun(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
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

// TestMinSlotIsWaitedFor asks for slots that come, come late, and never come.
func TestMinSlotIsWaitedFor(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		n := startNode(t, live(), Config{Shards: 2})
		root := rootBlock(100, lamports(key(1), 100))
		blocks := chainOf(root, 5)
		n.send(root)
		for _, tt := range []struct {
			q    ledger.Query
			want error
		}{
			{ledger.Query{MinSlot: 100}, nil},
			{ledger.Query{MinSlot: 101}, ledger.ErrMinSlot},
			{ledger.Query{MinSlot: 101, Wait: time.Second}, ledger.ErrMinSlot},
		} {
			began := time.Now()
			a, _, err := n.Account(tt.q, key(1))
			if took := time.Since(began); !errors.Is(err, tt.want) || err == nil && a.Lamports != 100 || took != tt.q.Wait {
				t.Errorf("%+v: %d lamports, %v after %v, want %v as soon as that is sure", tt.q, a.Lamports, err, took, tt.want)
			}
			ledgertest.ErrorIs(t, n.Await(tt.q), tt.want, "to wait alone")
		}
		for i, then := range [][]ledger.Event{
			events(blocks[:3]...), append(events(blocks[3:]...), status(blocks[2], ledger.StatusConfirmed)),
		} {
			began, level := time.Now(), levels[i]
			answer := n.ask(ledger.Query{MinSlot: 103, Wait: 2 * time.Second, Commitment: level}, key(1))
			time.Sleep(time.Second)
			n.send(then...)
			if a := <-answer; a.err != nil || a.account.Lamports != 103 || time.Since(began) != time.Second {
				t.Errorf("a slot that comes at %s while it is waited for: %+v after %v", level, a, time.Since(began))
			}
		}
	})
}
