package shard

import (
	"encoding/binary"
	"math/rand/v2"

	"ledgerd/engine/ledger"
)

const (
	testGroups     = 5
	testSignatures = 200
)

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

func signature(n int) (s ledger.Signature) {
	k := key(n / 2)
	copy(s[:4], k[:4]) // two of a half prefix
	binary.BigEndian.PutUint64(s[8:], uint64(n))
	return s
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
	pruned  int // and so many of those pruned
	hashes  map[ledger.Version]ledger.StateHash
}

// chained is a block on the chain and the version it was applied as.
type chained struct {
	version ledger.Version
	held    *HeldBlock
}

func (h *history) final() chained { return h.chain[h.finals-1] }

// held returns the blocks held at version v, which is a final block's.
func (h *history) held(v ledger.Version) (all []*HeldBlock) {
	for _, c := range h.chain[h.pruned:] {
		if c.version <= v {
			all = append(all, c.held)
		}
	}
	return all
}

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
	twice := false
	for range h.r.IntN(5) {
		s := signature(h.r.IntN(testSignatures))
		twice = twice || h.holds(s)
		b.AddTransaction(ledger.Transaction{Signature: s})
	}
	held := hold(b)
	if n := len(h.chain); n > 0 {
		held.Previous, held.HasPrevious = h.chain[n-1].held.Block.Slot, true
		b.ParentSlot = held.Previous
	}
	h.version++
	v := h.version
	h.chain = append(h.chain, chained{v, held})
	h.did(v, func(n *node) *Applied {
		return n.each(func(s *Shard) *Task { return s.ApplyBlock(v, b, held) })
	})
	if twice {
		h.finals = len(h.chain) // a rollback would bring back what is pruned meanwhile
	}
}

func (h *history) holds(s ledger.Signature) bool {
	for _, c := range h.chain[h.pruned:] {
		for _, t := range c.held.Signatures() {
			if t.Signature == s {
				return true
			}
		}
	}
	return false
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

// fold folds up to the newest final block and gives up some of those before it.
func (h *history) fold() {
	if h.r.IntN(2) == 0 {
		h.finals = len(h.chain)
	}
	to := h.final().version
	var pruned []*HeldBlock
	for n := h.r.IntN(h.finals - h.pruned); n > 0; n-- {
		pruned = append(pruned, h.chain[h.pruned].held)
		h.pruned++
	}
	// What is applied above a version may see tombstones that are forgotten before a snapshot
	// of that version is taken. So they are forgotten only where nothing is above.
	below := ledger.Slot(0)
	if h.pruned > 0 && to == h.version {
		below = h.chain[h.pruned-1].held.Block.Slot
	}
	h.did(0, func(n *node) *Applied {
		for _, s := range n.shards {
			s.Fold(to, pruned, below)
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
