package reader

import (
	"encoding/binary"
	"math"
	"slices"
	"testing"
	"time"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/ledgertest"
	"ledgerd/engine/published"
	"ledgerd/shard"
)

// Of a program with many accounts of which a filter takes few, a page ends before its limit, and the pages together have those few.
func TestPagesOfAFilteredListEndAfterManyAccounts(t *testing.T) {
	const count = 3 * mostVisits * 256
	program := ledger.Pubkey{7}
	keys := make([]ledger.Pubkey, count)
	for i := range keys {
		binary.BigEndian.PutUint64(keys[i][:], uint64(i)*(math.MaxUint64/count))
	}
	taken := []ledger.Pubkey{keys[3], keys[count/2], keys[count-1]}
	shards := []*shard.Shard{shard.New(0, 2), shard.New(1, 2)}
	for n, s := range shards {
		err := s.Restore(shard.Content{Version: 1, Mints: func(func(ledger.MintWrite) bool) error { return nil }, Accounts: func(visit func(*ledger.Account) bool) error {
			for _, k := range keys {
				a := ledger.Account{Pubkey: k, Lamports: 1, Owner: program, Known: ledger.FieldsShown | ledger.FieldData, Provenance: ledger.BlockProvenance(1)}
				if slices.Contains(taken, k) {
					a.Data = ledger.NewData([]byte{1})
				}
				if shard.Of(k.Prefix(), len(shards)) == n && !visit(&a) {
					break
				}
			}
			return nil
		}})
		ledgertest.Must(t, err)
		go s.Run(t.Context())
	}
	head := &ledger.Head{HasBlock: true}
	for i := range head.Tips {
		head.Tips[i].Version = 1
	}
	r := New(Config{Board: published.NewBoard(nil), Shards: shards, Deadline: time.Minute})
	q := ledger.Query{Head: head, Where: &ledger.DataFilter{Size: ledger.Some(uint64(1))}}
	var found []ledger.Pubkey
	pages := 0
	for next, more := (ledger.Opt[ledger.Pubkey]{}), true; more; more = next.Known {
		accounts, after, v, err := r.Program(q, program, next, 10, nil)
		if err != nil || v.DataUnknown {
			t.Fatalf("page %d: %v, accounts of unknown data: %v", pages, err, v.DataUnknown)
		}
		for i := range accounts {
			found = append(found, accounts[i].Pubkey)
		}
		next = after
		pages++
	}
	ledgertest.Equal(t, found, taken, "the accounts in %d pages", pages)
	if pages < 3 || pages > 4 {
		t.Errorf("%d accounts were looked at in %d pages", count, pages)
	}
}
