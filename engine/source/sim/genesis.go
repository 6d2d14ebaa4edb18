package sim

import (
	"crypto/sha256"
	"encoding/binary"
	"iter"

	"ledgerd/engine/ledger"
)

// baseAccounts is how many accounts one event of base state carries.
const baseAccounts = 4096

const sol = 1_000_000_000 // lamports

// fill gives every account its state at genesis.
func (w *world) fill() {
	for r := range w.programs.end() {
		w.cells[r].lamports = 1
	}
	for r := w.wallets.first; r < w.wallets.end(); r++ {
		w.cells[r].lamports = sol + w.share(r, 100*sol)
	}
	for r := w.identities.first; r < w.identities.end(); r++ {
		w.cells[r].lamports = 1000 * sol
	}
	for r := w.voteAccounts.first; r < w.voteAccounts.end(); r++ {
		w.cells[r].lamports = w.rentOf(r)
	}
	for r := w.mints.first; r < w.mints.end(); r++ {
		w.cells[r].lamports = w.rentOf(r)
	}
	for r := range w.openHoldings {
		w.fillHolding(w.holdings.at(r))
	}
}

// fillHolding opens a holding. One in eight begins empty; an issuer's is a
// hundred times as large.
func (w *world) fillHolding(r ref) {
	c, mint := &w.cells[r], w.mintOf(r)
	c.lamports = w.rentOf(r)
	if mint == w.mints.first {
		c.amount = w.share(r, 10*sol)
		c.lamports += c.amount
		return
	}
	if most := powerOfTen(w.decimalsOf(mint) + 4); w.isIssued(r) {
		c.amount = most + w.share(r, 100*most)
	} else if r%8 != 5 {
		c.amount = w.share(r, most)
	}
	w.cells[mint].amount += c.amount
}

// share returns the random part of what an account has at genesis, below most.
func (w *world) share(r ref, most uint64) uint64 {
	return scale(chosen(w.seed, choosesBalance, uint64(r)), most)
}

func powerOfTen(n uint8) uint64 {
	p := uint64(1)
	for range n {
		p *= 10
	}
	return p
}

// baseState returns every open account in events of bounded size.
func (w *world) baseState() iter.Seq[*ledger.BaseState] {
	return func(yield func(*ledger.BaseState) bool) {
		b := newBaseState()
		for r := range w.cells {
			if !w.cells[r].open() {
				continue
			}
			b.Accounts = append(b.Accounts, ledger.AccountWrite{})
			w.write(&b.Accounts[len(b.Accounts)-1], ref(r))
			if len(b.Accounts) == baseAccounts {
				if !yield(b) {
					return
				}
				b = newBaseState()
			}
		}
		if len(b.Accounts) != 0 {
			yield(b)
		}
	}
}

func newBaseState() *ledger.BaseState {
	return &ledger.BaseState{Slot: firstSlot - 1, Accounts: make([]ledger.AccountWrite, 0, baseAccounts)}
}

// genesisHash is what the first block names as its parent's hash: SHA-256 over "ledgerd sim
// genesis", the seed and the number of accounts, u64 little endian. These two decide every
// account at genesis, so all later hashes need not say more than what changed.
func genesisHash(p *params) ledger.Hash {
	b := []byte("ledgerd sim genesis")
	b = binary.LittleEndian.AppendUint64(b, p.seed)
	b = binary.LittleEndian.AppendUint64(b, p.accounts)
	return sha256.Sum256(b)
}
