package shard

import (
	"encoding/binary"
	"math/rand/v2"
	"runtime"
	"testing"
	"weak"

	"ledgerd/engine/ledger"
)

// TestDeletedValuesAreLetGo slides a window of values over a table, as retention does, and counts
// deleted ones that something still points at.
func TestDeletedValuesAreLetGo(t *testing.T) {
	const window, rounds = 24000, 100
	random := rand.New(rand.NewPCG(1, 2))
	s := newState(0, 1)
	var held []*heldTransaction
	var deleted []weak.Pointer[heldTransaction]
	for v := ledger.Version(1); v <= rounds; v++ {
		for range window / 16 {
			tx := new(heldTransaction)
			binary.BigEndian.PutUint64(tx.signature[:], random.Uint64())
			s.transactions.put(v, tx, tx)
			held = append(held, tx)
		}
		if v > 8 { // so many versions are not final yet
			s.transactions.fold(v-8, len(held))
		}
		for len(held) > window {
			s.transactions.putBase(held[0], nil)
			deleted = append(deleted, weak.Make(held[0]))
			held[0] = nil
			held = held[1:]
		}
		s.shed()
	}
	runtime.GC()
	alive := 0
	for _, w := range deleted {
		if w.Value() != nil {
			alive++
		}
	}
	// Each would pin the block it came with. Without shedding there are dozens.
	if alive > 8 {
		t.Errorf("%d of %d deleted values live on beside %d held ones", alive, len(deleted), len(held))
	}
	runtime.KeepAlive(s)
}
