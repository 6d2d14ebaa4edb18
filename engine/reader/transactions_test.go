package reader

import (
	"log/slog"
	"reflect"
	"syscall"
	"testing"
	"time"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/bubbletest"
	"ledgerd/engine/ledger/ledgertest"
	"ledgerd/engine/published"
	"ledgerd/shard"
	"ledgerd/shard/txstore"
	"ledgerd/snapshot"
	"ledgerd/snapshot/vfs/vfstest"
)

// TestATransactionIsWaitedFor asks for a transaction before it is there. It is answered when its block reaches the commitment that is asked
// for, and is not there when the time is up, which is so from the start where nobody waits.
func TestATransactionIsWaitedFor(t *testing.T) {
	type row struct {
		query ledger.Query
		after time.Duration
		err   error
	}
	notFound, notYet := &ledger.NotFoundError{Absence: ledger.TransactionNotFound}, &ledger.NotFoundError{Absence: ledger.TransactionNotYet}
	bubbletest.Each(t, map[string]row{
		"processed":       {ledger.Query{Wait: 2 * time.Second}, 400 * time.Millisecond, nil},
		"confirmed":       {ledger.Query{Wait: 2 * time.Second, Commitment: ledger.Confirmed}, 1200 * time.Millisecond, nil},
		"finalized":       {ledger.Query{Wait: 2 * time.Second, Commitment: ledger.Finalized}, 2 * time.Second, notYet},
		"not for so long": {ledger.Query{Wait: 300 * time.Millisecond}, 300 * time.Millisecond, notFound},
		"not at all":      {ledger.Query{}, 0, notFound},
	}, func(t *testing.T, tt row) {
		board, stored := published.NewBoard(nil), txstore.New()
		block, sig := &ledger.Block{Slot: 2}, ledger.Signature{7}
		block.AddTransaction(ledger.Transaction{Signature: sig})
		packed := stored.Pack(block)
		stored.Add(packed)
		publish := func(processed, confirmed ledger.Slot, blocks ...*txstore.Block) {
			head := &ledger.Head{HasBlock: true, Chain: txstore.Chain(blocks)}
			head.Tips[ledger.Processed].Slot, head.Tips[ledger.Confirmed].Slot = processed, confirmed
			board.Publish(&ledger.Publication{Head: head})
		}
		publish(1, 1)
		go func() {
			for _, tips := range [][2]ledger.Slot{{2, 1}, {3, 1}, {3, 3}} {
				time.Sleep(400 * time.Millisecond)
				publish(tips[0], tips[1], packed)
			}
		}()
		r, began := New(Config{Board: board, Stored: stored, Deadline: time.Second}), time.Now()
		a, _, err := r.Transaction(tt.query, sig)
		ledgertest.Equal(t, time.Since(began), tt.after, "the time that was waited")
		if !reflect.DeepEqual(err, tt.err) || err == nil && a.Transaction.Signature != sig {
			t.Errorf("answered %v, %v", a.Transaction, err)
		}
		time.Sleep(2 * time.Second) // the rest is published
	})
}

// A signature that memory holds above the commitment is not looked for on disk, where the answer would wait for its turn. One that is nowhere may be
// in a file of history that cannot be read.
func TestATransactionThatMemoryHoldsIsNotLookedForOnDisk(t *testing.T) {
	disk, quiet := vfstest.NewFaulty(vfstest.NewMemory(), vfstest.Plan{}), slog.New(slog.DiscardHandler)
	a, err := snapshot.OpenArchive(disk, "history", 1<<30, func() []string { return []string{"its root"} }, quiet)
	ledgertest.Must(t, err)
	archived := &ledger.Block{Slot: 1}
	archived.AddTransaction(ledger.Transaction{Signature: ledger.Signature{8, 63: 1}}) // it begins as one that is asked for
	ledgertest.Must(t, a.Add(t.Context(), []snapshot.HeldBlock{{Block: archived}}, 0, snapshot.Pace{}))
	stored, sig := txstore.New(), ledger.Signature{7}
	block := &ledger.Block{Slot: 2}
	block.AddTransaction(ledger.Transaction{Signature: sig})
	packed := stored.Pack(block)
	stored.Add(packed)
	r := New(Config{Board: published.NewBoard(nil), Stored: stored, Deadline: time.Minute})
	r.ReadArchive(a)
	head := &ledger.Head{HasBlock: true, Floor: 2, Chain: txstore.Chain{packed}}
	head.Tips[ledger.Processed].Slot = 2
	for sig, want := range map[ledger.Signature]struct {
		absence ledger.Absence
		read    bool
	}{sig: {ledger.TransactionNotYet, false}, {8}: {ledger.TransactionNotFound, true}} {
		disk.Arm(vfstest.Plan{})
		_, _, err := r.Transaction(ledger.Query{Head: head, Commitment: ledger.Finalized}, sig)
		ledgertest.Equal(t, err, error(&ledger.NotFoundError{Absence: want.absence}), "the answer for %s", sig)
		ledgertest.Equal(t, disk.Calls() > 0, want.read, "whether the disk is read for %s", sig)
	}
	// Where a file of history cannot be read it may be there.
	disk.Arm(vfstest.Plan{Call: 1, Err: syscall.EIO})
	_, _, err = r.Transaction(ledger.Query{Head: head}, ledger.Signature{8})
	ledgertest.Equal(t, err, error(&ledger.NotFoundError{Absence: ledger.TransactionLost}), "the answer where a file is lost")
}

// A page that ends before it found anything has an answer to go on from: older transactions may name the address.
func TestAPageOfNothingYetGoesOn(t *testing.T) {
	board, stored := published.NewBoard(nil), txstore.New()
	address := ledger.Pubkey{1}
	block := &ledger.Block{Slot: 2}
	block.AddTransaction(ledger.Transaction{Signature: ledger.Signature{1}, Accounts: []ledger.Pubkey{address}})
	many := make([]ledger.Pubkey, 1<<16)
	for n := range mostKeys/len(many) + 1 {
		block.AddTransaction(ledger.Transaction{Signature: ledger.Signature{2, byte(n)}, Accounts: many})
	}
	packed := stored.Pack(block)
	stored.Add(packed)
	head := &ledger.Head{HasBlock: true, Chain: txstore.Chain{packed}}
	head.Tips[ledger.Processed].Slot = 2
	board.Publish(&ledger.Publication{Head: head})
	r := New(Config{Board: board, Stored: stored, Deadline: time.Second})
	in := ledger.TransactionRange{Address: ledger.Some(address), Limit: 5}
	first, _, err := r.Transactions(ledger.Query{}, in)
	if err != nil || len(first.Transactions) > 0 || !first.Next.Known {
		t.Fatalf("the first page: %+v, %v", first, err)
	}
	in.Before = first.Next
	second, _, err := r.Transactions(ledger.Query{}, in)
	if err != nil || len(second.Transactions) != 1 || second.Next.Known {
		t.Errorf("the second page: %+v, %v", second, err)
	}
}

// A page passes over a day of blocks without transactions on disk, one each 400 ms: it goes on until one has a transaction. The disk is
// read once for each 500 of them at most: many share a chunk, which a walk reads once.
func TestAPagePassesOverADayWithoutTransactions(t *testing.T) {
	const day = 24 * 3600 * 10 / 4
	blocks := make([]snapshot.HeldBlock, day)
	for i := range blocks {
		slot := ledger.Slot(i + 1)
		blocks[i] = snapshot.HeldBlock{Block: &ledger.Block{Slot: slot, ParentSlot: slot - 1}, Previous: ledger.Some(slot - 1)}
	}
	blocks[0].Block.AddTransaction(ledger.Transaction{Signature: ledger.Signature{1}})
	blocks[day-1].Block.AddTransaction(ledger.Transaction{Signature: ledger.Signature{2}})
	disk, quiet := vfstest.NewFaulty(vfstest.NewMemory(), vfstest.Plan{}), slog.New(slog.DiscardHandler)
	a, err := snapshot.OpenArchive(disk, "history", 1<<30, func() []string { return []string{"its root"} }, quiet)
	ledgertest.Must(t, err)
	ledgertest.Must(t, a.Add(t.Context(), blocks, 1<<30, snapshot.Pace{}))
	board := published.NewBoard(nil)
	board.Publish(&ledger.Publication{Head: &ledger.Head{HasBlock: true, Floor: day + 1, Tips: [ledger.Commitments]ledger.Tip{{Slot: day}}}})
	r := New(Config{Board: board, Stored: txstore.New(), Shards: []*shard.Shard{shard.New(0, 1)}, Deadline: time.Hour})
	r.ReadArchive(a)
	for _, oldestFirst := range []bool{false, true} {
		disk.Arm(vfstest.Plan{Kinds: vfstest.KindReadAt})
		found := 0
		for in := (ledger.TransactionRange{Limit: 5, OldestFirst: oldestFirst}); ; {
			p, _, err := r.Transactions(ledger.Query{}, in)
			ledgertest.Must(t, err)
			if found += len(p.Transactions); !p.Next.Known {
				break
			}
			in.After, in.Before = p.Next, ledger.Opt[ledger.Signature]{}
			if !oldestFirst {
				in.After, in.Before = in.Before, in.After
			}
		}
		ledgertest.Equal(t, found, 2, "transactions, oldest first: %v", oldestFirst)
		ledgertest.Holds(t, disk.Calls() <= day/500, "oldest first %v: the disk is read %d times", oldestFirst, disk.Calls())
	}
}
