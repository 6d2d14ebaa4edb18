package geyser

import (
	"context"
	"errors"
	"net"
	"slices"
	"testing"
	"time"

	"google.golang.org/grpc"

	"ledgerd/engine/ledger"
	"ledgerd/engine/source/yellowstone"
)

// busy is a block with so many writes, half of them of token accounts, to one of 200,000 accounts each,
// and so many transactions with 12 keys.
func busy(slot ledger.Slot, writes, transactions int) (all []part) {
	all = append(all, slotUpdate(slot, yellowstone.CreatedBank))
	token := make([]byte, 165)
	token[0], token[32], token[64], token[108] = 1, 2, 3, 1
	key := func(n int) ledger.Pubkey { return ledger.Pubkey{byte(n), byte(n >> 8), byte(n >> 16), 7} }
	for n := range writes {
		owner, data := keyOf(9), make([]byte, 166)
		if n%2 == 0 {
			owner, data = ledger.TokenProgram, token
		}
		all = append(all, accountUpdate(slot, key((int(slot)*1000+n)%200_000), owner, 1, uint64(n), data))
	}
	var keys []ledger.Pubkey
	for k := range 12 {
		keys = append(keys, key(k))
	}
	for n := range transactions {
		all = append(all, transactionUpdate(slot, uint64(n), keys...))
	}
	head := headUpdate(slot, slot-1, hashOf(slot, 0), hashOf(slot-1, 0), uint64(transactions))
	return append(all, head, slotUpdate(slot, yellowstone.Processed), slotUpdate(slot, yellowstone.Finalized))
}

// BenchmarkStream follows a node over a TCP socket on the same cores, from its bytes to the blocks that are emitted.
func BenchmarkStream(b *testing.B) {
	type load struct{ writes, transactions int }
	for name, load := range map[string]load{"accounts": {750, 0}, "mainnet": {750, 400}, "transactions": {0, 400}} {
		b.Run(name, func(b *testing.B) {
			blocks := make([][]part, b.N)
			for i := range blocks {
				blocks[i] = busy(ledger.Slot(101+i), load.writes, load.transactions)
			}
			b.SetBytes(int64(len(slices.Concat(blocks[0]...))))
			socket, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				b.Fatal(err)
			}
			serve(b, socket, stays(slices.Concat(blocks...)...), grpc.WriteBufferSize(256<<10))
			s := New(Config{Address: socket.Addr().String(), Logger: quiet(), IdleTimeout: time.Minute, BlockTimeout: time.Minute})
			emitted := 0
			b.ReportAllocs()
			b.ResetTimer()
			from := &ledger.ResumePoint{Slot: 100, Blockhash: hashOf(100, 0)}
			err = s.Run(context.Background(), from, func(_ context.Context, e ledger.Event) error {
				switch e := e.(type) {
				case *ledger.Question:
					e.Answer <- ledger.Verdict{}
				case *ledger.Block:
					if emitted++; emitted == b.N {
						return errEnough
					}
				}
				return nil
			})
			b.StopTimer()
			if !errors.Is(err, errEnough) {
				b.Fatal(err)
			}
			b.ReportMetric(float64(load.writes*b.N)/b.Elapsed().Seconds(), "updates/s")
			b.ReportMetric(float64(len(blocks[0])*b.N)/b.Elapsed().Seconds(), "messages/s")
		})
	}
}
