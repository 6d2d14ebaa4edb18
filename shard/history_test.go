package shard

import (
	"math/rand/v2"

	"ledgerd/engine/ledger"
)

const testGroups = 5

func program(n int) ledger.Pubkey {
	if n < 2 {
		return []ledger.Pubkey{ledger.SystemProgram, ledger.TokenProgram}[n]
	}
	return near(2, n)
}

func wallet(n int) ledger.Pubkey { return near(3, n) }

// near returns keys of which the first half of the prefix, or all of it, is the same.
func near(first byte, n int) ledger.Pubkey {
	k := ledger.Pubkey{first, 31: byte(n)}
	k[6] = byte(n % 2)
	return k
}

// op is one thing that was done to a node, to be done to another.
type op struct {
	at      int
	version ledger.Version // 0: a fold
	do      func(*node) *Applied
	applied *Applied // by the first node
}

// history does random things to a node.
type history struct {
	r       *rand.Rand
	keys    int
	node    *node
	ops     []op
	next    int
	version ledger.Version
	slot    ledger.Slot
	chain   []chained
	finals  int // of the chain, so many blocks are final
	hashes  map[ledger.Version]ledger.StateHash
}

// chained is a block on the chain and the version it was applied as.
type chained struct {
	version ledger.Version
	slot    ledger.Slot
}

func (h *history) final() chained { return h.chain[h.finals-1] }

func (h *history) did(v ledger.Version, do func(*node) *Applied) {
	o := op{at: h.next, version: v, do: do, applied: do(h.node)}
	h.next++
	h.ops = append(h.ops, o)
	if v > 0 {
		h.hashes[v] = o.applied.Hash
	}
}

func (h *history) step() {
	if h.hashes == nil {
		h.hashes = make(map[ledger.Version]ledger.StateHash)
		for range h.r.IntN(3) {
			h.base(true)
		}
		h.block()
		h.finals = 1
	}
	switch n := h.r.IntN(20); {
	case n < 12:
		h.block()
	case n < 14:
		h.base(false)
	case n < 16 && h.finals < len(h.chain):
		h.rollback()
	case n < 18:
		h.finals += h.r.IntN(len(h.chain) - h.finals + 1)
	default:
		h.fold()
	}
}

func (h *history) base(direct bool) {
	base := &ledger.BaseState{Slot: ledger.Slot(h.r.IntN(int(h.slot) + 4))}
	base.Accounts, base.Mints = h.writes(h.keys/2), h.mints()
	h.version++
	v := h.version
	h.did(v, func(n *node) *Applied {
		return n.each(func(s *Shard) *Task { return s.ApplyBase(v, base, direct) })
	})
}

func (h *history) block() {
	h.slot += ledger.Slot(1 + h.r.IntN(2))
	b := &ledger.Block{Slot: h.slot, Accounts: h.writes(10), Mints: h.mints()}
	h.version++
	v := h.version
	h.chain = append(h.chain, chained{v, h.slot})
	h.did(v, func(n *node) *Applied {
		return n.each(func(s *Shard) *Task { return s.ApplyBlock(v, b) })
	})
}

func (h *history) rollback() {
	to := h.finals + h.r.IntN(len(h.chain)-h.finals)
	first := h.chain[to].version
	h.chain = h.chain[:to]
	h.version++
	v := h.version
	h.did(v, func(n *node) *Applied {
		return n.each(func(s *Shard) *Task { return s.Rollback(v, first) })
	})
}

// fold folds up to the newest final block and forgets tombstones of before one of those.
func (h *history) fold() {
	if h.r.IntN(2) == 0 {
		h.finals = len(h.chain)
	}
	to := h.final().version
	// What is applied above a version may see tombstones that are forgotten before a snapshot
	// of that version is taken. So they are forgotten only where nothing is above.
	below := ledger.Slot(0)
	if n := h.r.IntN(h.finals); n > 0 && to == h.version {
		below = h.chain[n-1].slot
	}
	h.did(0, func(n *node) *Applied {
		for _, s := range n.shards {
			s.Fold(to, below)
		}
		return &Applied{}
	})
}

func (h *history) writes(most int) (all []ledger.AccountWrite) {
	for range h.r.IntN(most + 1) {
		w := ledger.AccountWrite{
			Pubkey: key(h.r.IntN(h.keys)), Lamports: ledger.Lamports(h.r.IntN(4)), Owner: program(h.r.IntN(testGroups)),
			Known: ledger.FieldsAll, RentEpoch: uint64(h.r.IntN(2)),
		}
		if h.r.IntN(4) == 0 {
			w.Known = ledger.Fields(h.r.IntN(int(ledger.FieldsAll) + 1))
		}
		switch h.r.IntN(4) {
		case 0, 1:
			w.Owner = ledger.TokenProgram
			w.Token = &ledger.TokenAccount{Mint: key(h.r.IntN(3)), Owner: wallet(h.r.IntN(testGroups)), Amount: uint64(h.r.IntN(3))}
		case 2:
			w.Mint = &ledger.Mint{Decimals: 2, Supply: ledger.Some(uint64(h.r.IntN(9)))}
		}
		all = append(all, w)
	}
	return all
}

func (h *history) mints() (all []ledger.MintWrite) {
	for range h.r.IntN(3) {
		all = append(all, ledger.MintWrite{Pubkey: key(h.r.IntN(h.keys)), Mint: ledger.Mint{Decimals: 2}})
	}
	return all
}
