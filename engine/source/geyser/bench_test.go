package geyser

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"

	"ledgerd/engine/ledger"
	"ledgerd/engine/source/yellowstone"
)

// busy is a quarter of a block of a busy network: as many writes, half of them of token accounts, and
// transactions with 12 keys each.
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
		all = append(all, accountUpdate(slot, key(int(slot)*1000+n), owner, 1, uint64(n), data))
	}
	keys := part(nil)
	for k := range 12 {
		at := key(k)
		keys = keys.bytes(2, at[:])
	}
	for n := range transactions {
		signature := make([]byte, 64)
		signature[0], signature[1], signature[2] = byte(slot), byte(n), byte(n>>8)
		body := part(nil).bytes(1, signature).bytes(2, keys)
		info := part(nil).bytes(1, signature).bytes(3, body).bytes(4, part(nil).number(2, 5000)).number(5, uint64(n))
		all = append(all, part(nil).bytes(4, part(nil).bytes(1, info).number(2, uint64(slot))))
	}
	hash, parent := hashOf(slot, 0), hashOf(slot-1, 0)
	meta := part(nil).number(1, uint64(slot)).bytes(2, hash.AppendBase58(nil)).number(6, uint64(slot-1)).
		bytes(7, parent.AppendBase58(nil)).number(8, uint64(transactions))
	return append(all, part(nil).bytes(7, meta), slotUpdate(slot, yellowstone.Processed), slotUpdate(slot, yellowstone.Finalized))
}

// BenchmarkStream follows a node over a TCP socket, from its bytes to the blocks that are emitted. The node
// sends what is encoded already; it works on the same cores.
func BenchmarkStream(b *testing.B) {
	for _, load := range []struct {
		name                 string
		writes, transactions int
	}{{"accounts", 750, 0}, {"mainnet", 750, 400}, {"transactions", 0, 400}} {
		b.Run(load.name, func(b *testing.B) {
			blocks := make([][]part, b.N)
			size, messages := 0, 0
			for i := range blocks {
				blocks[i] = busy(ledger.Slot(101+i), load.writes, load.transactions)
			}
			for _, m := range blocks[0] {
				size += len(m)
				messages++
			}
			socket, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				b.Fatal(err)
			}
			begin := make(chan struct{})
			server := grpc.NewServer(grpc.ForceServerCodecV2(serverCodec{}), grpc.WaitForHandlers(true), grpc.WriteBufferSize(256<<10),
				grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
					if err := stream.RecvMsg(new([]byte)); err != nil {
						return err
					}
					<-begin
					for _, block := range blocks {
						for _, m := range block {
							if err := stream.SendMsg([]byte(m)); err != nil {
								return err
							}
						}
					}
					<-stream.Context().Done()
					return nil
				}))
			var serving sync.WaitGroup
			serving.Go(func() { _ = server.Serve(socket) })
			defer serving.Wait()
			defer server.Stop()
			s := New(Config{Address: socket.Addr().String(), Logger: quiet(), IdleTimeout: time.Minute, BlockTimeout: time.Minute})
			emitted := 0
			close(begin)
			b.SetBytes(int64(size))
			b.ReportAllocs()
			b.ResetTimer()
			err = s.Run(context.Background(), at(100), func(_ context.Context, e ledger.Event) error {
				if _, ok := e.(*ledger.Block); ok {
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
			b.ReportMetric(float64(messages*b.N)/b.Elapsed().Seconds(), "messages/s")
		})
	}
}
