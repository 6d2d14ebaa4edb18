package sim

// useCollectible puts a payment in the block that takes a collectible one step on in its
// life: its mint opens; its one token is minted to the first owner, who gives it to the
// second, who burns it; then its mint closes, or mints again.
func (p *producer) useCollectible() {
	number := p.anyOf(p.collectibleMints.count)
	mint := p.collectibleMints.at(number)
	first, second := p.collectibleHoldings.at(2*number), p.collectibleHoldings.at(2*number+1)
	payer := p.issuerOf(mint)
	switch {
	case p.cells[first].open():
		payer = p.ownerOf(first)
	case p.cells[second].open():
		payer = p.ownerOf(second)
	}
	if !p.canPay(payer) {
		return
	}
	switch {
	case p.cells[first].open():
		p.payRent(payer, second)
		p.touch(second).amount = 1
		p.takeRent(payer, first)
		p.transact(true, 1, payer, first, second, p.ownerOf(second), mint, systemProgram, token2022Program)
	case p.cells[second].open():
		p.takeRent(payer, second)
		p.touch(mint).amount = 0
		p.transact(true, 1, payer, second, mint, token2022Program)
	case !p.cells[mint].open():
		p.payRent(payer, mint)
		p.transact(true, 2, payer, mint, systemProgram, token2022Program) // the new mint signs too
	case p.random.below(2) == 0:
		p.takeRent(payer, mint)
		p.transact(true, 1, payer, mint, token2022Program)
	default:
		p.payRent(payer, first)
		p.touch(first).amount = 1
		p.touch(mint).amount = 1
		p.transact(true, 1, payer, mint, first, p.ownerOf(first), systemProgram, token2022Program)
	}
}
