package sim

import "math"

// mostSupply is where issuers begin to burn instead of minting more.
const mostSupply = 1 << 62

// useHolding puts a payment in the block that uses a holding as its state allows: a closed one
// opens, a frozen one thaws, and of the others one in fifteen closes, so that about
// one in sixteen stays closed.
func (p *producer) useHolding(h ref) {
	mint := p.mintOf(h)
	if mint == p.mints.first {
		p.useWrappedHolding(h)
		return
	}
	c := &p.cells[h]
	switch dice := p.random.below(60); {
	case !c.open():
		p.openHolding(h)
	case c.frozen:
		p.setFrozen(h, mint, false)
	case p.isIssued(h) && dice < 7:
		p.transferTokens(h, mint)
	case dice < 4:
		p.closeHolding(h, mint)
	case dice < 5:
		p.setFrozen(h, mint, true)
	case dice < 7:
		p.changeDelegate(h, mint)
	case dice < 10:
		p.mintOrBurn(h, mint)
	default:
		p.transferTokens(h, mint)
	}
}

// openHolding opens an empty holding, its owner paying the rent.
func (p *producer) openHolding(h ref) {
	if owner := p.ownerOf(h); p.canPay(owner) {
		p.payRent(owner, h)
		mint := p.mintOf(h)
		p.transact(true, 1, owner, h, mint, systemProgram, p.programOf(mint))
	}
}

// payRent opens an account with rent paid by a wallet.
func (p *producer) payRent(payer, opened ref) {
	rent := p.rentOf(opened)
	p.touch(payer).lamports -= rent
	p.touch(opened).lamports = rent
}

// takeRent closes an account and gives its lamports to a wallet.
func (p *producer) takeRent(taker, closed ref) {
	c := p.touch(closed)
	p.touch(taker).lamports += c.lamports
	*c = cell{touched: true}
}

// closeHolding closes a holding. What is left in it goes to the issuer.
func (p *producer) closeHolding(h, mint ref) {
	owner := p.ownerOf(h)
	if !p.canPay(owner) {
		return
	}
	if left := p.cells[h].amount; left > 0 {
		p.touch(p.issuedOf(mint)).amount += left
	}
	p.takeRent(owner, h)
	p.transact(true, 1, owner, h, p.issuedOf(mint), p.programOf(mint))
}

// setFrozen has the issuer freeze or thaw a holding. The issuer's own is never frozen.
func (p *producer) setFrozen(h, mint ref, frozen bool) {
	if issuer := p.issuerOf(mint); p.canPay(issuer) {
		p.touch(h).frozen = frozen
		p.transact(true, 1, issuer, h, mint, p.programOf(mint))
	}
}

// changeDelegate takes a holding's delegate away or gives it one.
func (p *producer) changeDelegate(h, mint ref) {
	owner := p.ownerOf(h)
	if !p.canPay(owner) {
		return
	}
	c := p.touch(h)
	if c.delegate != 0 {
		c.delegate, c.delegated = 0, 0
		p.transact(true, 1, owner, h, p.programOf(mint))
		return
	}
	delegate := p.anyOtherWallet(owner)
	c.delegate, c.delegated = delegate, 1+p.random.below(c.amount+1)
	p.transact(true, 1, owner, h, delegate, p.programOf(mint))
}

// mintOrBurn changes the supply of a mint by what one holding gets or loses.
func (p *producer) mintOrBurn(h, mint ref) {
	amount, supply := p.cells[h].amount, p.cells[mint].amount
	if amount > 0 && (supply > mostSupply || p.random.below(2) == 0) {
		p.burn(h, mint)
	} else if supply <= mostSupply {
		p.mintTo(h, mint)
	}
}

func (p *producer) mintTo(h, mint ref) {
	if issuer := p.issuerOf(mint); p.canPay(issuer) {
		minted := 1 + p.random.below(uint64(math.Pow10(int(p.decimalsOf(mint))+3)))
		p.touch(h).amount += minted
		p.touch(mint).amount += minted
		p.transact(true, 1, issuer, mint, h, p.programOf(mint))
	}
}

func (p *producer) burn(h, mint ref) {
	if owner := p.ownerOf(h); p.canPay(owner) {
		burned := 1 + p.random.below(p.cells[h].amount/4+1)
		p.touch(h).amount -= burned
		p.touch(mint).amount -= burned
		p.transact(true, 1, owner, h, mint, p.programOf(mint))
	}
}

// transferTokens moves a part of a holding to another of the same mint. Its delegate, if there is
// one, moves it half of the time, up to what it may.
func (p *producer) transferTokens(h, mint ref) {
	to, found := p.anyOtherHolding(h, mint)
	if !found || p.cells[h].amount == 0 {
		p.mintOrBurn(h, mint)
		return
	}
	payer, amount := p.ownerOf(h), 1+p.random.below(p.cells[h].amount/4+1)
	byDelegate := p.cells[h].delegate != 0 && p.random.below(2) == 0
	if byDelegate {
		payer, amount = p.cells[h].delegate, min(amount, p.cells[h].delegated)
	}
	if !p.canPay(payer) {
		return
	}
	c := p.touch(h)
	if c.amount -= amount; byDelegate {
		if c.delegated -= amount; c.delegated == 0 {
			c.delegate = 0
		}
	}
	p.touch(to).amount += amount
	p.transact(true, 1, payer, h, to, mint, p.programOf(mint))
}

// anyOtherHolding draws another holding of the same mint that can receive: the issuer's if
// luck finds none.
func (p *producer) anyOtherHolding(than, mint ref) (r ref, found bool) {
	for range tries / 2 {
		r = p.anyHoldingOf(mint)
		if c := &p.cells[r]; r != than && c.open() && !c.frozen {
			return r, true
		}
	}
	r = p.issuedOf(mint)
	return r, r != than
}

// anyHoldingOf draws a holding of a mint, open or not.
func (p *producer) anyHoldingOf(mint ref) ref {
	number := mint - p.mints.first
	ofMint := (p.holdings.count - number + p.mints.count - 1) / p.mints.count
	return p.holdings.at(number + p.anyOf(ofMint)*p.mints.count)
}
