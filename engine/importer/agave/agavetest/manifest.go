package agavetest

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"ledgerd/engine/ledger"
)

// Manifest returns snapshots/SLOT/SLOT: the bank, the storages and what follows, in bincode.
func (a *Archive) Manifest() []byte {
	const slotsPerYear = 78892314.9
	slot, epoch := a.Slot, a.Slot/432_000
	schedule := put(nil, 432_000, 432_000, false, 0, 0)
	b := a.blockhashQueue()
	b = put(b, 2, slot-1, 1, slot, 0)                              // ancestors
	b = put(b, [64]byte{}, a.Parent, 1, 7, 1)                      // hashes of banks, parent slot, hard forks
	b = put(b, 99, 100, 5, a.Capitalization, 101)                  // transactions, ticks, signatures, capitalization, max tick height
	b = put(b, true, 62500, 64, 400_000_000, 0)                    // hashes per tick, ticks per slot, ns per slot u128
	b = put(b, 1_584_368_940, slotsPerYear, 1)                     // creation, slots per year, data length
	b = put(b, slot, epoch, a.Height, [32]byte{}, 12)              // collector, its fees
	b = put(b, 5000, 10000, 20000, 5000, 100000, byte(50), 0)      // fee calculator, fee rate governor, collected rent
	b = put(b, epoch, schedule, slotsPerYear, 3480, 2.0, byte(50)) // rent collector
	b = put(b, schedule, [6]uint64{}, a.stakes())                  // inflation
	b = put(b, 1, [32]byte{}, 0, 0)                                // unused accounts
	b = put(b, 2)                                                  // epoch stakes
	for epoch := range 2 {
		b = put(b, epoch, a.stakes(), 1000)
		b = put(b, 1, [32]byte{}, 2, [64]byte{}, 1000) // nodes and their vote accounts
		b = put(b, 1, [64]byte{})                      // authorized voters
	}
	b = put(b, true) // is_delta
	return a.accountsDB(b)
}

func (a *Archive) blockhashQueue() []byte {
	b := put(nil, 300, true, a.Blockhash, 2)
	b = put(b, ledger.Hash{0, 0xee}, 5000, 299, 1_700_000_000_000)
	b = put(b, a.Blockhash, 5000, 300, 1_700_000_000_000)
	return put(b, 300)
}

// stakes returns Stakes<Delegation>.
func (a *Archive) stakes() []byte {
	b := put(nil, a.VoteAccounts)
	for i := range a.VoteAccounts {
		b = put(b, [32]byte{}, 500, 27_074_400, 100+i, make([]byte, 100+i), [32]byte{}, false, uint64(math.MaxUint64))
	}
	b = put(b, a.VoteAccounts)
	for range a.VoteAccounts {
		b = put(b, [64]byte{}, 500, 0, uint64(math.MaxUint64), 0.25)
	}
	return put(b, 0, 800, 1, 799, 1, 2, 3) // unused, epoch, history
}

// accountsDB appends AccountsDbFields and the fields after them.
func (a *Archive) accountsDB(b []byte) []byte {
	bySlot := make(map[uint64][]Storage)
	for _, s := range a.Storages {
		bySlot[s.Slot] = append(bySlot[s.Slot], s)
	}
	b = put(b, len(bySlot))
	for _, of := range slices.Sorted(maps.Keys(bySlot)) {
		b = put(b, of, len(bySlot[of]))
		for _, s := range bySlot[of] {
			b = put(b, s.ID, cmp.Or(s.Used, uint64(len(s.Bytes()))))
		}
	}
	b = put(b, 0, a.Slot, [64]byte{}, 1, 2, 3, 4, 5)
	b = put(b, 0, 0, 5000, false)  // the last one: incremental
	return put(b, false, 0, false) // epoch accounts hash, versioned epoch stakes
}

// ExtraBytes is what the fields after AccountsDbFields take, all of which old writers leave off; IncrementalByte is the
// place among them of the byte that says that the snapshot is incremental.
const (
	ExtraBytes      = IncrementalByte + 1 + 1 + 8 + 1
	IncrementalByte = 8 + 8 + 8
)
