package codec

import (
	"encoding/binary"
	"testing"

	"ledgerd/engine/ledger"
)

// benchBlock is a block as a busy ledger makes it: 3,000 writes, a third of them of token
// accounts, and 1,000 transactions of 12 keys.
func benchBlock() *ledger.Block {
	key := func(n int) (k ledger.Pubkey) {
		binary.BigEndian.PutUint64(k[:], uint64(n)*0x9e3779b97f4a7c15)
		return k
	}
	b := &ledger.Block{Slot: 250_000_000, ParentSlot: 249_999_999, Time: ledger.Some(int64(1_700_000_000)), Height: ledger.Some(uint64(230_000_000))}
	for i := range 1000 {
		t := ledger.Transaction{Fee: ledger.Some(ledger.Lamports(5000)), Success: ledger.Some(true)}
		binary.BigEndian.PutUint64(t.Signature[:], uint64(i))
		for j := range 12 {
			t.Accounts = append(t.Accounts, key(i*12+j))
		}
		b.AddTransaction(t)
	}
	for i := range 3000 {
		w := ledger.AccountWrite{Pubkey: key(i), Lamports: ledger.Lamports(2_039_280 + i), RentEpoch: 1<<64 - 1, Known: ledger.FieldsAll}
		if i%3 == 0 {
			w.Owner = ledger.TokenProgram
			w.Token = &ledger.TokenAccount{Mint: key(i % 50), Owner: key(i + 1), Amount: uint64(i) << 30, Details: ledger.Some(ledger.TokenDetails{State: ledger.TokenInitialized})}
		}
		b.Accounts = append(b.Accounts, w)
	}
	return b
}

func BenchmarkCodec(b *testing.B) {
	block := benchBlock()
	record := &ledger.Record{Kind: ledger.StatusRecord, Status: ledger.StatusConfirmed}
	for i := range block.Accounts {
		account := ledger.Merge(nil, &block.Accounts[i], ledger.BlockProvenance(block.Slot))
		account.Known &^= ledger.FieldMint
		record.Updates = append(record.Updates, ledger.Update{Account: *account})
	}
	event, updates, buf := AppendEvent(nil, block), AppendRecord(nil, record), make([]byte, 0, 4<<20)
	for _, bench := range []struct {
		name string
		f    func()
	}{
		{"encode block", func() { buf = AppendEvent(buf[:0], block) }},
		{"decode block", func() { _, _ = DecodeEvent(event) }},
		{"encode 3000 updates", func() { buf = AppendRecord(buf[:0], record) }},
		{"decode 3000 updates", func() { _, _ = DecodeRecord(updates) }},
	} {
		b.Run(bench.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				bench.f()
			}
		})
	}
}
