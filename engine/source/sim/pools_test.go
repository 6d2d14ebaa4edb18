package sim

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"math/rand/v2"
	"reflect"
	"testing"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/ledgertest"
)

const withPools = "accounts=1300,tps=300,slot_time=0,fork_rate=0.1,pools=12"

// What the data of an account says is what its write tells, and it is as long as its rent is for.
func TestDataTellsTheFactsOfItsWrite(t *testing.T) {
	source := open(t, withPools)
	w := newWorld(source.layout)
	w.fill()
	var err error
	w.held, err = ledger.ParseDataPrograms("all")
	ledgertest.Must(t, err)
	check := func(slot ledger.Slot, r ref) {
		var write ledger.AccountWrite
		w.write(&write, r)
		data, known := w.data(r)
		if !w.cells[r].open() || !known {
			return
		}
		if write.Known&ledger.FieldData == 0 || !bytes.Equal(write.Data.Bytes(), data) {
			t.Fatalf("slot %d: account %d tells the data %x, want %x", slot, r, write.Data.Bytes(), data)
		}
		if w.pools.has(r) {
			a, b := w.vaultsOf(r)
			reserves := binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, w.cells[a].amount), w.cells[b].amount)
			ledgertest.Equal(t, data[136:152], reserves, "slot %d: what the vaults of pool %d hold", slot, r)
		}
		token, mint := ledger.ParseTokenData(write.Owner, data)
		if !reflect.DeepEqual(token, write.Token) || !reflect.DeepEqual(mint, write.Mint) {
			t.Fatalf("slot %d: account %d of %s: the data %x says %+v, %+v, want %+v, %+v", slot, r, write.Owner, data, token, mint, write.Token, write.Mint)
		}
		if rent := (128 + uint64(len(data))) * 6960; !w.isWallet(r) && rent != w.rentOf(r) {
			t.Fatalf("slot %d: account %d has %d bytes of data, and pays %d lamports", slot, r, len(data), w.rentOf(r))
		}
	}
	for r := range w.cells {
		check(0, ref(r))
	}
	c := &chain{producer: newProducer(&source.params, w)}
	for slot := firstSlot; slot <= 100; slot++ {
		if c.next(slot) == nil {
			continue
		}
		for r := range w.cells {
			if slot%20 == 0 {
				check(slot, ref(r))
			}
		}
	}
}

// The product of the reserves of a pool does not fall, and none of them is emptied.
func TestASwapNeverEmptiesAPool(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 10_000 {
		paid, in, out := r.Uint64()>>(2+r.IntN(60)), 1+r.Uint64()>>(2+r.IntN(60)), 1+r.Uint64()>>(2+r.IntN(60))
		got := swapped(paid, in, out)
		was, wasLow := bits.Mul64(in, out)
		is, isLow := bits.Mul64(in+paid, out-got)
		if got >= out || is < was || is == was && isLow < wasLow {
			t.Fatalf("%d paid to reserves of %d and %d give %d", paid, in, out, got)
		}
	}
}
