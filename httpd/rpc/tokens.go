package rpc

import (
	"github.com/valyala/fastjson"

	"ledgerd/engine/ledger"
	"ledgerd/httpd"
	"ledgerd/httpd/encode"
)

const largestTokens = 20 // as many as Agave answers

// The sentences are those of Agave: clients tell by them what is wrong.
var (
	errNoAccount    = &callError{code: codeParams, message: "Invalid param: could not find account"}
	errNoToken      = &callError{code: codeParams, message: "Invalid param: not a Token account"}
	errNoMint       = &callError{code: codeParams, message: "Invalid param: not a Token mint"}
	errSupply       = &callError{code: codeParams, message: "Invalid param: mint could not be unpacked"}
	errMint         = &callError{code: codeParams, message: "Invalid param: Token mint could not be unpacked"}
	errMintMissing  = &callError{code: codeParams, message: "Invalid param: could not find mint"}
	errTokenProgram = &callError{code: codeParams, message: "Invalid param: unrecognized Token program id"}
)

// tokenBalance answers the amount that a token account holds.
func (c *call) tokenBalance(dst []byte) ([]byte, error) {
	key, _ := c.about("pubkey")
	for {
		accounts, err := c.accountsAt([]ledger.Pubkey{key})
		if err != nil {
			return dst, err
		}
		a := &accounts[0]
		switch {
		case !a.Exists():
			return dst, errNoAccount
		case a.Token == nil && a.Known&(ledger.FieldToken|ledger.FieldOwner) != 0:
			return dst, errNoToken
		case a.Token == nil:
			return dst, elsewhere(codeExcluded, "the source has not shown what account %s holds", key)
		}
		read := c.query.Head
		mint, err := c.heldMint(a.Token.Mint)
		if err != nil {
			return dst, err
		}
		if c.query.Head == read {
			return append(appendAmount(c.appendContext(dst), a.Token.Amount, mint), '}'), nil
		}
		// The mint was fetched, into a newer version. Should the account hold another one there, that is fetched too, by the deadline of the call.
	}
}

// heldMint returns the facts of a mint of which tokens are held. Agave looks at what lies there, whoever owns it.
func (c *call) heldMint(key ledger.Pubkey) (*ledger.Mint, error) {
	if key == ledger.NativeMint {
		return nativeMint, c.wrong
	}
	return c.mint(key, errMintMissing, errMint, errMint)
}

// mint returns the facts of a mint. The error is missing where there is no account, foreign where it is one of no token program, and other where a token
// program has another one there.
func (c *call) mint(key ledger.Pubkey, missing, foreign, other error) (*ledger.Mint, error) {
	if c.wrong != nil {
		return nil, c.wrong
	}
	if facts, err := c.factsOf(key); err != nil || facts != nil {
		return facts, err
	}
	c.query.Head = nil // the account may be fetched, into a newer version
	accounts, err := c.accountsAt([]ledger.Pubkey{key})
	if err != nil {
		return nil, err
	}
	if facts, err := c.factsOf(key); err != nil || facts != nil {
		return facts, err
	}
	switch a := &accounts[0]; {
	case !a.Exists():
		return nil, missing
	case a.Known&ledger.FieldOwner != 0 && !ledger.IsTokenProgram(a.Owner):
		return nil, foreign
	case isNoMint(a):
		return nil, other
	}
	return nil, elsewhere(codeExcluded, "the source has not shown whether %s is a mint", key)
}

// tokenSupply answers how many tokens of a mint there are.
func (c *call) tokenSupply(dst []byte) ([]byte, error) {
	key, _ := c.about("mint")
	mint, err := c.mint(key, errNoAccount, errNoMint, errSupply)
	switch {
	case err != nil:
		return dst, err
	case !mint.Supply.Known:
		return dst, elsewhere(codeExcluded, "the source has not shown the supply of mint %s", key)
	}
	return append(appendAmount(c.appendContext(dst), mint.Supply.Value, mint), '}'), nil
}

// tokenFilter is which token accounts are wanted: those of a mint, or those of a token program.
type tokenFilter struct{ mint, program ledger.Opt[ledger.Pubkey] }

func (f *tokenFilter) skips(a ledger.Account) bool {
	if f.mint.Known {
		return a.Token.Mint != f.mint.Value
	}
	return a.Owner != f.program.Value
}

// tokenFilter reads the filter at i.
func (c *call) tokenFilter(i int) (f tokenFilter) {
	v := c.param(i)
	if v == nil || v.Type() != fastjson.TypeObject {
		c.bad("the filter must be an object with mint or programId")
		return f
	}
	mint, program := given(v.Get("mint")), given(v.Get("programId"))
	switch {
	case (mint == nil) == (program == nil):
		c.bad("the filter must have either mint or programId")
	case mint != nil:
		f.mint = ledger.Some(c.key(mint, "mint"))
	default:
		f.program = ledger.Some(c.key(program, "programId"))
		if c.wrong == nil && !ledger.IsTokenProgram(f.program.Value) {
			c.wrong = errTokenProgram
		}
	}
	return f
}

func (c *call) tokensByOwner(dst []byte) ([]byte, error) {
	return c.tokensBy(dst, ledger.OfWallet, "owner")
}

func (c *call) tokensByDelegate(dst []byte) ([]byte, error) {
	return c.tokensBy(dst, ledger.OfDelegate, "delegate")
}

// tokensBy answers the token accounts of the first parameter, which the method calls by a name.
func (c *call) tokensBy(dst []byte, by ledger.TokensOf, name string) ([]byte, error) {
	owner, filter, f := c.key(c.param(0), name), c.tokenFilter(1), c.readForm(c.config(2), asBinary)
	c.query.TokensOf = by
	if _, err := c.newest(); err != nil {
		return dst, err
	}
	if filter.mint.Known {
		if _, err := c.heldMint(filter.mint.Value); err != nil {
			return dst, err
		}
	}
	scan, err := c.tokens(owner, &f)
	if err != nil {
		return dst, err
	}
	scan.skips = filter.skips
	return scan.appendAll(append(c.appendContext(dst), '['), "]}")
}

// tokens returns a scan of the token accounts of somebody.
func (c *call) tokens(of ledger.Pubkey, f *form) (*scan, error) {
	s := c.scan(c.door.config.Ledger.Tokens, "token accounts of", of, f)
	s.page = httpd.TokenPage
	return s, c.x.Reserve(httpd.TokenPage * accountBytes) // for the page that is read
}

// largestAccounts answers the token accounts that hold the most of a mint.
func (c *call) largestAccounts(dst []byte) ([]byte, error) {
	key, _ := c.about("mint")
	if c.wrong == nil && !c.door.config.IndexMints {
		return dst, elsewhere(codeExcluded, "%s: this node has no index of token accounts by their mints, which takes --index-mints", key)
	}
	if _, err := c.newest(); err != nil {
		return dst, err
	}
	mint, err := c.heldMint(key)
	if err != nil {
		return dst, err
	}
	c.query.TokensOf = ledger.OfMint
	s, err := c.tokens(key, nil)
	var largest []ledger.Account
	for err == nil && !s.whole {
		err = s.read()
		largest = httpd.KeepLargest(append(largest, s.left...), largestTokens)
	}
	dst = append(c.appendContext(dst), '[')
	var list encode.List
	for _, a := range largest {
		dst = encode.AppendKey(list.Next(dst), `{"address":`, &a.Pubkey)
		dst = append(appendAmountFields(append(dst, ','), a.Token.Amount, mint), '}')
	}
	return append(dst, `]}`...), err
}
