package sim

// useWrappedHolding wraps lamports, passes them on, or unwraps all of them by closing the
// holding. A holding of wrapped lamports holds its amount in lamports above its rent.
func (p *producer) useWrappedHolding(h ref) {
	owner := p.ownerOf(h)
	if !p.canPay(owner) {
		return
	}
	mint := p.mints.first
	switch dice := p.random.below(15); {
	case !p.cells[h].open():
		p.payRent(owner, h)
		p.wrap(owner, h)
		p.transact(true, 1, owner, h, mint, systemProgram, tokenProgram)
	case dice < 1 && !p.isIssued(h):
		p.takeRent(owner, h)
		p.transact(true, 1, owner, h, tokenProgram)
	case dice < 8 && p.cells[h].amount > 0:
		if to, found := p.anyOtherHolding(h, mint); found {
			p.passWrapped(owner, h, to)
			return
		}
		fallthrough
	default:
		p.wrap(owner, h)
		p.transact(true, 1, owner, h, systemProgram, tokenProgram)
	}
}

// wrap moves at most a sixteenth of a wallet's lamports into a holding.
func (p *producer) wrap(owner, h ref) {
	lamports := 1 + p.random.below(p.cells[owner].lamports/16)
	p.touch(owner).lamports -= lamports
	c := p.touch(h)
	c.lamports += lamports
	c.amount += lamports
}

// passWrapped moves a part of a holding to another, in tokens and in lamports.
func (p *producer) passWrapped(owner, from, to ref) {
	lamports := 1 + p.random.below(p.cells[from].amount/4+1)
	c := p.touch(from)
	c.lamports -= lamports
	c.amount -= lamports
	c = p.touch(to)
	c.lamports += lamports
	c.amount += lamports
	p.transact(true, 1, owner, from, to, p.mints.first, tokenProgram)
}
