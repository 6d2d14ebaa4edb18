package sim

// poorBelow is what a wallet needs to pay for a transaction: far above any rent and fee, so
// that none is ever emptied.
const poorBelow = sol / 50

// tries bounds every search for an account in the right state. What is not found after them
// is left undone.
const tries = 8

// pay puts one payment in the block: half of them are system transfers, but for the quarter that are swaps where there are pools.
func (p *producer) pay() {
	if p.random.coin(p.schedule.failRate) {
		p.fail()
		return
	}
	if p.pools.count > 0 && p.random.below(4) == 0 && p.swap() {
		return
	}
	switch dice := p.random.below(100); {
	case dice < 50:
		p.transfer()
	case dice < 56:
		p.useWrappedHolding(p.anyHoldingOf(p.mints.first))
	case dice < 60:
		p.useCollectible()
	default:
		p.useHolding(p.anyHolding())
	}
}

// anyOf draws a number below n, the lower ones more often if the parameters say so.
func (p *producer) anyOf(n uint32) uint32 {
	if p.zipf == nil {
		return uint32(p.random.below(uint64(n)))
	}
	// The table has one rank for each wallet: stretched or pressed to n.
	return uint32(p.zipf.draw(&p.random) * uint64(n) / uint64(p.wallets.count))
}

func (p *producer) anyWallet() ref  { return p.wallets.at(p.anyOf(p.wallets.count)) }
func (p *producer) anyHolding() ref { return p.holdings.at(p.anyOf(p.holdings.count)) }

// anyOtherWallet draws a wallet that is not this one.
func (p *producer) anyOtherWallet(than ref) ref {
	r := p.anyWallet()
	if r == than {
		return p.wallets.at((r - p.wallets.first + 1) % p.wallets.count)
	}
	return r
}

func (p *producer) poor(wallet ref) bool { return p.cells[wallet].lamports < poorBelow }

// canPay reports whether a wallet can pay for a transaction. A poor one gets money instead: that
// is the payment then, and the caller has nothing left to do.
func (p *producer) canPay(wallet ref) bool {
	if !p.poor(wallet) {
		return true
	}
	from := p.leader
	for range tries {
		if p.cells[from].lamports >= 2*poorBelow {
			p.send(from, wallet)
			break
		}
		from = p.anyOtherWallet(wallet)
	}
	return false
}

// fail puts a transaction in the block that tried to move more than there is. It pays
// its fee.
func (p *producer) fail() {
	for range tries {
		if from := p.anyWallet(); !p.poor(from) {
			p.transact(false, 1, from, p.anyOtherWallet(from), systemProgram)
			return
		}
	}
}

// transfer moves lamports from one wallet to another.
func (p *producer) transfer() {
	if from := p.anyWallet(); p.canPay(from) {
		p.send(from, p.anyOtherWallet(from))
	}
}

// send moves at most a sixteenth of the lamports of a wallet that can pay.
func (p *producer) send(from, to ref) {
	lamports := 1 + p.random.below(p.cells[from].lamports/16)
	p.touch(from).lamports -= lamports
	p.touch(to).lamports += lamports
	p.transact(true, 1, from, to, systemProgram)
}

// vote puts a vote in the block. The leader's own would move its fee nowhere, so
// another validator votes.
func (p *producer) vote() {
	n := uint32(p.random.below(uint64(p.identities.count)))
	for range p.identities.count {
		n = (n + 1) % p.identities.count
		voter := p.identities.at(n)
		if voter == p.leader || p.poor(voter) {
			continue
		}
		account := p.voteAccounts.at(n)
		p.touch(voter)
		p.touch(account) // its data changes, which nobody sees
		p.transact(true, 1, voter, account, voteProgram)
		return
	}
}
