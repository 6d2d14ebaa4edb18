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
			check(slot, ref(r))
		}
	}
}

// The data of a pool changes with every swap, its reserves are what its vaults hold, their product does not fall, and its lamports stay.
func TestSwapsChangeTheDataOfPoolsAndNotTheirLamports(t *testing.T) {
	all := books(run(t, withPools+",slots=200", nil))
	layout := open(t, withPools).layout
	reserves := func(b *book, pool ref) (a, of uint64) {
		first, second := layout.vaultsOf(pool)
		return b.accounts[layout.key(first)].Token.Amount, b.accounts[layout.key(second)].Token.Amount
	}
	byHash := make(map[ledger.Hash]*book)
	swaps := make(map[ref]int)
	for _, b := range all {
		byHash[b.block.Blockhash] = b
		parent := byHash[b.block.PreviousBlockhash.Value]
		if parent == nil {
			continue
		}
		for pool := layout.pools.first; pool < layout.pools.end(); pool++ {
			a, of := reserves(b, pool)
			was, ofWas := reserves(parent, pool)
			high, low := bits.Mul64(a, of)
			highWas, lowWas := bits.Mul64(was, ofWas)
			if high < highWas || high == highWas && low < lowWas {
				t.Fatalf("slot %d: pool %d had %d and %d, and has %d and %d", b.block.Slot, pool, was, ofWas, a, of)
			}
			if account := b.accounts[layout.key(pool)]; uint64(account.Lamports) != layout.rentOf(pool) || account.Owner != poolProgramKey {
				t.Fatalf("slot %d: a pool is %+v", b.block.Slot, account)
			}
			if a != was {
				swaps[pool]++
			}
		}
	}
	for pool := layout.pools.first; pool < layout.pools.end(); pool++ {
		if swaps[pool] < 10 {
			t.Errorf("pool %d changed in %d blocks of %d", pool, swaps[pool], len(all))
		}
	}
	w := newWorld(layout)
	w.fill()
	data, _ := w.data(layout.pools.first)
	a, of := reserves(all[0], layout.pools.first)
	if gotA, gotB := binary.LittleEndian.Uint64(data[136:]), binary.LittleEndian.Uint64(data[144:]); gotA != a || gotB != of {
		t.Errorf("a pool tells reserves of %d and %d, its vaults hold %d and %d", gotA, gotB, a, of)
	}
}

func TestASwapNeverEmptiesAPool(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 10_000 {
		paid, in, out := r.Uint64()>>(2+r.IntN(60)), 1+r.Uint64()>>(2+r.IntN(60)), 1+r.Uint64()>>(2+r.IntN(60))
		if got := swapped(paid, in, out); got >= out {
			t.Fatalf("%d paid to reserves of %d and %d give %d", paid, in, out, got)
		}
	}
}
