package yellowstone

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/datatest"
	"ledgerd/engine/ledger/ledgertest"
)

// A server that counts more transactions than it sends, also when it is asked again, is believed.
func TestCountsThatNeverComeTrueAreGivenUp(t *testing.T) {
	for every := range ledger.Slot(4) {
		countsNeverComeTrue(t, every+1)
	}
}

// countsNeverComeTrue has one of some blocks count a transaction more than it has.
func countsNeverComeTrue(t *testing.T, every ledger.Slot) {
	a, _ := tell(t, "live")
	asked := 0
	for slot := ledger.Slot(100); slot < 160; slot++ {
		b := aBlock(rand.New(rand.NewPCG(1, 1)), slot, 2)
		if slot%every == 0 {
			b.head.Transactions = 3
		}
		confirmed := []Update{statusOf(slot, Confirmed), statusOf(slot+1, Confirmed)}
		messages := slices.Concat([]Update{statusOf(slot, CreatedBank)}, b.whole(), confirmed)
		for err := feed(t, a, messages...); err != nil; err = feed(t, a, messages...) {
			if want := fmt.Sprintf("the stream sent 2 of the 3 transactions of slot %d", slot); err.Error() != want {
				t.Fatalf("slot %d: %v, want %s", slot, err, want)
			}
			asked++
			a.Reconnected()
		}
	}
	if asked != believedMiscounts || a.Counts.Sealed < 60 || a.Counts.Incomplete != 60/uint64(every) {
		t.Errorf("asked %d times where one of %d is short, %+v", asked, every, a.Counts)
	}
}

// Whatever a live stream says, it is taken or refused, and what is held stays within its bounds.
func TestLiveStreamsOfAnything(t *testing.T) {
	for seed := range uint64(ledgertest.Sample(300, 60, 15)) {
		r := rand.New(rand.NewPCG(seed, 3))
		a := NewAssembler(discard)
		a.Live, a.HasTransactions = true, r.IntN(2) == 0
		for range 400 {
			b := aBlock(r, ledger.Slot(100+r.IntN(8)), r.IntN(4))
			b.head.Hash[2] = byte(r.IntN(2))
			messages := append(b.whole(), statusOf(b.want.Slot, SlotStatus(r.IntN(8))))
			u := messages[r.IntN(len(messages))]
			u.Bank = uint64(r.IntN(3))
			if err := a.Take(t.Context(), &u); err != nil {
				a.Reconnected()
			}
		}
		held := 0
		for s := range a.tries() {
			held += s.bytes
		}
		ledgertest.Equal(t, a.bytes, held, "seed %d: bytes that are counted", seed)
	}
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
