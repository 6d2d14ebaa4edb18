package sim

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"math"

	"ledgerd/engine/ledger"
)

// baseAccounts is how many accounts one event of base state carries.
const baseAccounts = 4096

const sol = 1_000_000_000 // lamports

// fill gives every account its state at genesis.
func (w *world) fill() {
	for r := range w.size() {
		c := &w.cells[r]
		switch {
		case r >= w.holdings.at(w.openHoldings) && r < w.poolProgram.first: // opens later
		case w.programs.has(r), w.poolProgram.has(r):
			c.lamports = 1
		case w.wallets.has(r):
			c.lamports = sol + w.share(r, 100*sol)
		case w.identities.has(r):
			c.lamports = 1000 * sol
		case w.isHolding(r):
			w.fillHolding(r)
		default:
			c.lamports = w.rentOf(r)
		}
	}
}

// fillHolding opens a holding. One in eight begins empty; an issuer's and a pool's are a
// hundred times as large.
func (w *world) fillHolding(r ref) {
	c, mint := &w.cells[r], w.mintOf(r)
	c.lamports = w.rentOf(r)
	if mint == w.mints.first {
		c.amount = w.share(r, 10*sol)
		c.lamports += c.amount
		return
	}
	if most := uint64(math.Pow10(int(w.decimalsOf(mint)) + 4)); w.isIssued(r) || w.isVault(r) {
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

// baseState emits every open account in events of bounded size.
func (w *world) baseState(ctx context.Context, emit ledger.Emit) error {
	b := &ledger.BaseState{Slot: firstSlot - 1}
	for r := range w.cells {
		if w.cells[r].open() {
			b.Accounts = append(b.Accounts, ledger.AccountWrite{})
			w.write(&b.Accounts[len(b.Accounts)-1], ref(r))
		}
		if n := len(b.Accounts); n == baseAccounts || n > 0 && r == len(w.cells)-1 {
			if err := emit(ctx, b); err != nil {
				return err
			}
			b = &ledger.BaseState{Slot: b.Slot, Accounts: make([]ledger.AccountWrite, 0, baseAccounts)}
		}
	}
	return nil
}

// genesisHash is what the first block names as its parent's hash: SHA-256 over "ledgerd sim
// genesis", the seed, the number of accounts and, if there are any, of pools, u64 little endian. These decide every
// account at genesis, so all later hashes need not say more than what changed.
func genesisHash(p *params) ledger.Hash {
	b := []byte("ledgerd sim genesis")
	b = binary.LittleEndian.AppendUint64(b, p.seed)
	b = binary.LittleEndian.AppendUint64(b, p.accounts)
	if p.pools != 0 {
		b = binary.LittleEndian.AppendUint64(b, p.pools)
	}
	return sha256.Sum256(b)
}
