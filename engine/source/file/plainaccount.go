package file

import (
	"math"

	"ledgerd/engine/source/nodejson"
)

// plainAccount is the account that is read just now. The pointers lead to the values behind.
type plainAccount struct {
	lineAccount[[]byte]

	lamports, rentEpoch uint64
	owner               []byte
	executable          bool

	token plainToken
	mint  plainMint
}

// plainToken is the token of an account.
type plainToken struct {
	nodejson.TokenFacts[[]byte]

	mint, owner, amount, state, delegate, delegatedAmount, closeAuthority []byte
	isNative                                                              bool
}

// plainMint is the mint of an account.
type plainMint struct {
	nodejson.MintFacts[[]byte]

	decimals uint8
	supply   []byte
	scaled   bool
}

// readAccount reads the object of an account.
func (p *plainDecoder) readAccount() {
	a := &p.account
	a.lineAccount = lineAccount[[]byte]{}
	for more := p.open('{', '}'); more; more = p.more('}') {
		switch string(p.name()) {
		case "pubkey":
			if p.value(a.Pubkey != nil) {
				a.Pubkey = p.raw()
			}
		case "lamports":
			p.uintField(&a.Lamports, &a.lamports)
		case "owner":
			p.textField(&a.Owner, &a.owner)
		case "executable":
			p.boolField(&a.Executable, &a.executable)
		case "rent_epoch":
			p.uintField(&a.RentEpoch, &a.rentEpoch)
		case "data":
			if p.value(a.Data != nil) {
				a.Data = p.quoted()
			}
		case "token":
			if p.facts(&a.Token.known) {
				p.readToken(&a.token)
				a.Token.value = &a.token.TokenFacts
			}
		case "mint":
			if p.facts(&a.Mint.known) {
				p.readMint(&a.mint)
				a.Mint.value = &a.mint.MintFacts
			}
		default:
			p.fail()
		}
	}
}

// facts reports whether the object of facts follows, and makes them known unless they are
// null. The false that stands for none is consumed.
func (p *plainDecoder) facts(known *bool) bool {
	if !p.value(*known) {
		return false
	}
	*known = true
	if p.peek() == '{' {
		return true
	}
	if p.bool() {
		p.fail()
	}
	return false
}

func (p *plainDecoder) readToken(t *plainToken) {
	t.TokenFacts = nodejson.TokenFacts[[]byte]{}
	for more := p.open('{', '}'); more; more = p.more('}') {
		switch string(p.name()) {
		case "mint":
			p.textField(&t.Mint, &t.mint)
		case "owner":
			p.textField(&t.Owner, &t.owner)
		case "amount":
			p.textField(&t.Amount, &t.amount)
		case "state":
			p.textField(&t.State, &t.state)
		case "delegate":
			p.textField(&t.Delegate, &t.delegate)
		case "delegated_amount":
			p.textField(&t.DelegatedAmount, &t.delegatedAmount)
		case "close_authority":
			p.textField(&t.CloseAuthority, &t.closeAuthority)
		case "is_native":
			p.boolField(&t.IsNative, &t.isNative)
		default:
			p.fail()
		}
	}
}

func (p *plainDecoder) readMint(m *plainMint) {
	m.MintFacts = nodejson.MintFacts[[]byte]{}
	for more := p.open('{', '}'); more; more = p.more('}') {
		switch string(p.name()) {
		case "decimals":
			if p.value(m.Decimals != nil) {
				m.decimals = uint8(p.uint(math.MaxUint8))
				m.Decimals = &m.decimals
			}
		case "supply":
			p.textField(&m.Supply, &m.supply)
		case "scaled":
			p.boolField(&m.Scaled, &m.scaled)
		default:
			p.fail()
		}
	}
}
