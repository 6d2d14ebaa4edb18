package yellowstone

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/datatest"
	"ledgerd/engine/ledger/ledgertest"
)

// Whatever a live stream says, it is taken or refused, and what is held stays within its bounds.
func TestLiveStreamsOfAnything(t *testing.T) {
	for seed := range uint64(ledgertest.Sample(300, 60, 15)) {
		r := rand.New(rand.NewPCG(seed, 3))
		a := NewAssembler(discard)
		a.Live, a.HasTransactions = true, r.IntN(2) == 0
		for range 400 {
			b := aBlock(r, ledger.Slot(100+r.IntN(8)), r.IntN(4))
			b.head.Blockhash[2] = byte(r.IntN(2))
			messages := append(b.whole(), statusOf(b.slot, SlotStatus(r.IntN(8))))
			u := messages[r.IntN(len(messages))]
			u.Bank = uint64(r.IntN(3))
			if err := a.Take(t.Context(), &u); err != nil {
				a.Reconnected()
			}
		}
		ledgertest.Equal(t, a.bytes, heldBytes(a), "seed %d: bytes that are counted", seed)
	}
}

// heldBytes sums up the sizes of the tries that are open.
func heldBytes(a *Assembler) (sum int) {
	for s := range a.tries() {
		sum += s.bytes
	}
	return sum
}

// F21: a validator's recorded stream, told live, has the blocks of the recording but for the first, which it began to show in the middle.
func TestRecordedStreamIsTheSameLive(t *testing.T) {
	var told [2][]ledger.Hash
	for i, live := range []bool{false, true} {
		c := new(collector)
		a := NewAssembler(c.emit)
		a.Live = live
		for raw := datatest.Read(t, datatest.Path(t, "streams/mainnet-398202772-398202821.geyser.bin.gz")); len(raw) > 0; {
			end := 4 + binary.BigEndian.Uint32(raw)
			var u Update
			must(t, Decoder{}.Decode(raw[4:end], &u))
			mustFeed(t, a, u)
			raw = raw[end:]
		}
		for _, e := range c.events {
			if b, ok := e.(*ledger.Block); ok {
				told[i] = append(told[i], b.Blockhash)
			}
		}
	}
	ledgertest.Equal(t, len(told[1]), 48, "blocks")
	ledgertest.Equal(t, told[1], told[0][1:], "the blocks")
}
