package agavetest

import (
	"math"

	"ledgerd/engine/ledger"
)

// Manifest returns snapshots/SLOT/SLOT: the bank, the storages and what follows, in bincode.
func (a *Archive) Manifest() []byte {
	slot := a.Slot
	if a.ManifestSlot != 0 {
		slot = a.ManifestSlot
	}
	b := a.blockhashQueue()
	b = u64(b, 2, slot-1, 1, slot, 0) // ancestors
	b = append(b, make([]byte, 64)...)
	b = u64(b, a.Parent)
	b = u64(b, 1, 7, 1)    // hard forks
	b = u64(b, 99, 100, 5) // transactions, ticks, signatures
	b = u64(b, a.Capitalization, 101)
	b = u64(append(b, 1), 62500)                               // hashes per tick
	b = u64(b, 64, 400_000_000, 0)                             // ticks per slot, ns per slot u128
	b = u64(b, 1_584_368_940, math.Float64bits(78892314.9), 1) // creation, slots per year, data length
	b = u64(b, slot, slot/432_000, a.Height)
	b = append(b, make([]byte, 32)...)       // collector
	b = u64(b, 12, 5000)                     // its fees, fee calculator
	b = u64(b, 10000, 20000, 5000, 100000)   // fee rate governor
	b = append(b, 50)                        //
	b = u64(b, 0, slot/432_000)              // collected rent, rent collector
	b = epochSchedule(b)                     //
	b = u64(b, math.Float64bits(78892314.9)) //
	b = u64(b, 3480, math.Float64bits(2))    // rent
	b = append(b, 50)                        //
	b = epochSchedule(b)                     //
	b = u64(b, make([]uint64, 6)...)         // inflation
	b = a.stakes(b)                          //
	b = u64(b, 1)                            // unused accounts
	b = append(b, make([]byte, 32)...)       //
	b = u64(b, 0, 0)                         //
	b = u64(b, 2)                            // epoch stakes
	for epoch := range uint64(2) {
		b = a.stakes(u64(b, epoch))
		b = u64(b, 1000, 1) // total, nodes
		b = append(b, make([]byte, 32)...)
		b = u64(b, 2)
		b = append(b, make([]byte, 64)...)
		b = u64(b, 1000)
		b = u64(b, 1)
		b = append(b, make([]byte, 64)...)
	}
	b = append(b, 1) // is_delta
	return a.accountsDB(b, slot)
}

func (a *Archive) blockhashQueue() []byte {
	b := append(u64(nil, 300), 1)
	b = append(b, a.Blockhash[:]...)
	b = u64(b, 2)
	for i := range uint64(2) {
		h := ledger.Hash{byte(i), 0xee}
		if i == 1 && !a.HashUnknown {
			h = a.Blockhash
		}
		b = append(b, h[:]...)
		b = u64(b, 5000, 299+i, 1_700_000_000_000)
	}
	return u64(b, 300)
}

func epochSchedule(b []byte) []byte {
	b = append(u64(b, 432_000, 432_000), 0)
	return u64(b, 0, 0)
}

// stakes writes Stakes<Delegation>.
func (a *Archive) stakes(b []byte) []byte {
	b = u64(b, uint64(a.VoteAccounts))
	for i := range a.VoteAccounts {
		b = append(b, make([]byte, 32)...)
		b = u64(b, 500, 27_074_400, uint64(100+i))
		b = append(b, make([]byte, 100+i)...)
		b = append(b, make([]byte, 32)...)
		b = u64(append(b, 0), math.MaxUint64)
	}
	b = u64(b, uint64(a.VoteAccounts))
	for range a.VoteAccounts {
		b = append(b, make([]byte, 64)...)
		b = u64(b, 500, 0, math.MaxUint64, math.Float64bits(0.25))
	}
	b = u64(b, 0, 800, 1) // unused, epoch, history
	return u64(b, 799, 1, 2, 3)
}

// accountsDB writes AccountsDbFields and the fields behind the bank.
func (a *Archive) accountsDB(b []byte, slot uint64) []byte {
	var order []uint64
	bySlot := make(map[uint64][]*Storage)
	for i := range a.Storages {
		s := &a.Storages[i]
		if s.Unlisted {
			continue
		}
		if bySlot[s.Slot] == nil {
			order = append(order, s.Slot)
		}
		bySlot[s.Slot] = append(bySlot[s.Slot], s)
	}
	b = u64(b, uint64(len(order)))
	for _, of := range order {
		b = u64(b, of, uint64(len(bySlot[of])))
		for _, s := range bySlot[of] {
			b = u64(b, s.ID, s.used())
		}
	}
	b = u64(b, 0, slot)
	b = append(b, make([]byte, 64)...)
	b = u64(b, 1, 2, 3, 4, 5)
	if a.NoExtra {
		return b
	}
	b = u64(b, 0, 0, 5000)
	if a.Incremental {
		b = u64(append(b, 1), slot-100)
		b = append(b, make([]byte, 32)...)
		b = u64(b, 1)
		b = append(b, make([]byte, 32)...)
		b = u64(b, 1)
	} else {
		b = append(b, 0)
	}
	b = append(b, 0) // epoch accounts hash
	b = u64(b, 0)    // versioned epoch stakes
	return append(b, 0)
}
