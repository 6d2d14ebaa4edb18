package txstore

import (
	"encoding/binary"
	"reflect"
	"slices"
	"testing"

	"go.uber.org/goleak"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/ledgertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var key = ledgertest.Key

func signature(n int) (s ledger.Signature) {
	binary.BigEndian.PutUint64(s[8:], uint64(n))
	return s
}

// TestTransactionsAreFoundOnTheirChain adds and removes blocks of several branches, many of which have the
// same signatures, some twice, and asks for all signatures on chains of random blocks.
func TestTransactionsAreFoundOnTheirChain(t *testing.T) {
	const signatures = 40
	r := ledgertest.Seeded(t, 1)
	s := New()
	var blocks []*Block
	for step := range 400 {
		if len(blocks) > 0 && r.IntN(5) < 2 || step > 350 {
			n := min(len(blocks), 1+r.IntN(3))
			r.Shuffle(len(blocks), func(i, j int) { blocks[i], blocks[j] = blocks[j], blocks[i] })
			s.Remove(blocks[:n])
			blocks = blocks[n:]
		} else {
			b := &ledger.Block{Slot: ledger.Slot(step)}
			for range r.IntN(8) {
				b.AddTransaction(ledger.Transaction{Signature: signature(r.IntN(signatures)), Accounts: []ledger.Pubkey{key(step)}})
			}
			blocks = append(blocks, s.Pack(b))
			s.Add(blocks[len(blocks)-1])
		}
		chain := make(map[*Block]bool)
		want := make(map[ledger.Signature]ledger.Transaction)
		count := 0
		for _, b := range slices.SortedFunc(slices.Values(blocks), func(a, b *Block) int { return int(a.Block.Slot) - int(b.Block.Slot) }) {
			count += b.Len()
			if chain[b] = r.IntN(2) == 0; chain[b] {
				for _, tx := range b.Transactions(0, b.Len()) {
					want[tx.Signature] = tx
				}
			}
		}
		for n := range signatures {
			sig := signature(n)
			got := s.Transaction(&sig, func(b *Block) bool { return chain[b] })
			if tx, found := want[sig]; found != (got != nil) || found && !reflect.DeepEqual(*got, tx) {
				t.Fatalf("step %d: signature %d is of %+v, want %+v (found %v)", step, n, got, tx, found)
			}
		}
		ledgertest.Equal(t, s.Len(), count, "step %d: transactions that are found", step)
	}
	ledgertest.Equal(t, len(s.records), 0, "signatures that are left of no blocks")
}
