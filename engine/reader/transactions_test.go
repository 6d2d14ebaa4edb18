package reader

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/bubbletest"
	"ledgerd/engine/ledger/ledgertest"
	"ledgerd/engine/published"
	"ledgerd/shard/txstore"
)

// TestATransactionIsWaitedFor asks for a transaction before it is there. It is answered when its block reaches the commitment that is asked
// for, and is not there when the time is up, which is so from the start where nobody waits.
func TestATransactionIsWaitedFor(t *testing.T) {
	bubbletest.Test(t, func(t *testing.T) {
		board, stored := published.NewBoard(nil), txstore.New()
		publish := func(processed, confirmed ledger.Slot, blocks ...*txstore.Block) {
			head := &ledger.Head{HasBlock: true, Chain: txstore.Chain(blocks)}
			head.Tips[ledger.Processed].Slot, head.Tips[ledger.Confirmed].Slot = processed, confirmed
			board.Publish(&ledger.Publication{Head: head})
		}
		block := &ledger.Block{Slot: 2}
		sig := ledger.Signature{7}
		block.AddTransaction(ledger.Transaction{Signature: sig})
		with := stored.Pack(block)
		stored.Add(with)
		publish(1, 1)
		r := New(Config{Board: board, Stored: stored, Deadline: time.Second})
		began := time.Now()
		type answered struct {
			after time.Duration
			found bool
		}
		asked := map[string]ledger.Query{
			"processed":       {Wait: 2 * time.Second},
			"confirmed":       {Wait: 2 * time.Second, Commitment: ledger.Confirmed},
			"finalized":       {Wait: 2 * time.Second, Commitment: ledger.Finalized},
			"not for so long": {Wait: 300 * time.Millisecond},
			"not at all":      {},
		}
		answers := make(map[string]answered)
		turns := make(chan struct{}, 1)
		for name, q := range asked {
			go func() {
				a, _, err := r.Transaction(q, sig)
				if found := err == nil; found == errors.Is(err, ledger.ErrNotFound) || found && a.Transaction.Signature != sig {
					t.Errorf("%s: %v, %v", name, a.Transaction, err)
				}
				turns <- struct{}{}
				answers[name] = answered{time.Since(began), err == nil}
				<-turns
			}()
		}
		for _, next := range []func(){func() { publish(2, 1, with) }, func() { publish(3, 1, with) }, func() { publish(3, 3, with) }} {
			time.Sleep(400 * time.Millisecond)
			synctest.Wait()
			next()
		}
		time.Sleep(3 * time.Second)
		synctest.Wait()
		ledgertest.Equal(t, answers, map[string]answered{
			"processed": {400 * time.Millisecond, true}, "confirmed": {1200 * time.Millisecond, true}, "finalized": {2 * time.Second, false},
			"not for so long": {300 * time.Millisecond, false}, "not at all": {0, false},
		}, "answers")
	})
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
