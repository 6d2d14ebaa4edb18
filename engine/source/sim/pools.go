package sim

import (
	"math/bits"

	"ledgerd/engine/ledger"
)

// A pool is an account of the pool program: a market of two mints, whose two vaults are holdings that belong to the pool. A swap pays into one
// vault and takes out of the other, so that the product of both never falls. The lamports of the pool never move: only its data says that
// something happened.

// swapFee is what a pool keeps of what is paid in, in ten-thousandths.
const swapFee = 30

// poolProgramKey is the program that owns the pools.
var poolProgramKey = ledger.MustPubkey("PooL111111111111111111111111111111111111111")

// isVault reports whether a holding belongs to a pool.
func (l *layout) isVault(r ref) bool { return l.vaults.has(r) }

// poolOf returns the pool of a vault.
func (l *layout) poolOf(vault ref) ref { return l.pools.at((vault - l.vaults.first) / 2) }

// vaultsOf returns the two vaults of a pool.
func (l *layout) vaultsOf(pool ref) (a, b ref) {
	a = l.vaults.at(2 * (pool - l.pools.first))
	return a, a + 1
}

// vaultMint returns the mint of a vault. Each mint but the first, of wrapped lamports, is in two pools, with the mints beside it, if there are as
// many pools as that.
func (l *layout) vaultMint(vault ref) ref {
	number := vault - l.vaults.first
	return l.mints.at(1 + (number/2+number%2)%(l.mints.count-1))
}

// swap puts a payment in the block that exchanges a part of a holding for what a pool gives for it, which goes to any holding of the other
// mint. It reports whether luck found a holding to pay from.
func (p *producer) swap() bool {
	in, out := p.vaultsOf(p.pools.at(p.anyOf(p.pools.count)))
	if p.random.below(2) == 0 {
		in, out = out, in
	}
	for range tries {
		from := p.anyHoldingOf(p.mintOf(in))
		if c := &p.cells[from]; c.open() && !c.frozen && c.amount > 0 {
			p.swapFrom(from, in, out)
			return true
		}
	}
	return false
}

// swapFrom pays from a holding into the vault in.
func (p *producer) swapFrom(from, in, out ref) {
	owner := p.ownerOf(from)
	if !p.canPay(owner) {
		return
	}
	to, _ := p.anyOtherHolding(out, p.mintOf(out))
	paid := 1 + p.random.below(p.cells[from].amount/16+1)
	got := swapped(paid, p.cells[in].amount, p.cells[out].amount)
	p.touch(from).amount -= paid
	p.touch(in).amount += paid
	p.touch(out).amount -= got
	p.touch(to).amount += got
	pool := p.poolOf(in)
	p.touch(pool)
	p.transact(true, 1, owner, pool, in, out, from, to, p.programOf(p.mintOf(in)), p.programOf(p.mintOf(out)), p.poolProgram.first)
}

// swapped returns what a pool gives for an amount, rounded down: the product of its reserves does not fall, and a reserve is never emptied.
func swapped(paid, reserveIn, reserveOut uint64) uint64 {
	high, low := bits.Mul64(paid, 10_000-swapFee)
	counted, _ := bits.Div64(high, low, 10_000)
	high, low = bits.Mul64(reserveOut, counted)
	got, _ := bits.Div64(high, low, reserveIn+counted)
	return got
}
