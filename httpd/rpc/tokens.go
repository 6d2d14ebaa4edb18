package rpc

import (
	"errors"

	"github.com/valyala/fastjson"

	"ledgerd/engine/ledger"
)

// tokenPage is how many token accounts of a wallet are read at once.
const tokenPage = 1000

// The sentences are those of Agave: clients tell by them what is wrong.
var (
	errNoAccount    = &callError{code: codeParams, message: "Invalid param: could not find account"}
	errNoToken      = &callError{code: codeParams, message: "Invalid param: not a Token account"}
	errNoMint       = &callError{code: codeParams, message: "Invalid param: not a Token mint"}
	errMintMissing  = &callError{code: codeParams, message: "Invalid param: could not find mint"}
	errTokenProgram = &callError{code: codeParams, message: "Invalid param: unrecognized Token program id"}
)

// tokenBalance answers the amount that a token account holds.
func (c *call) tokenBalance(dst []byte) ([]byte, error) {
	key, _, err := c.about("pubkey")
	if err != nil {
		return dst, err
	}
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
	facts := make(map[ledger.Pubkey]*ledger.Mint)
	if err := c.learnMints(facts, []ledger.Pubkey{a.Token.Mint}); err != nil {
		return dst, err
	}
	mint := facts[a.Token.Mint]
	if mint == nil {
		return dst, elsewhere(codeExcluded, "the source has not shown mint %s", a.Token.Mint)
	}
	return append(appendAmount(c.appendContext(dst), a.Token.Amount, mint), '}'), nil
}

// mint returns the facts of a mint, whose absence is the error missing.
func (c *call) mint(key ledger.Pubkey, missing error) (*ledger.Mint, error) {
	facts := make(map[ledger.Pubkey]*ledger.Mint)
	if err := c.learnMints(facts, []ledger.Pubkey{key}); err != nil || facts[key] != nil {
		return facts[key], err
	}
	accounts, err := c.accountsAt([]ledger.Pubkey{key})
	switch {
	case err != nil:
		return nil, err
	case !accounts[0].Exists():
		return nil, missing
	case accounts[0].Known&ledger.FieldMint == 0 && (accounts[0].Known&ledger.FieldOwner == 0 || ledger.IsTokenProgram(accounts[0].Owner)) && accounts[0].Token == nil:
		return nil, elsewhere(codeExcluded, "the source has not shown whether %s is a mint", key)
	}
	return nil, errNoMint
}

// tokenSupply answers how many tokens of a mint there are.
func (c *call) tokenSupply(dst []byte) ([]byte, error) {
	key, _, err := c.about("mint")
	if err != nil {
		return dst, err
	}
	mint, err := c.mint(key, errNoAccount)
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

func (f *tokenFilter) takes(a *ledger.Account) bool {
	if f.mint.Known {
		return a.Token.Mint == f.mint.Value
	}
	return a.Owner == f.program.Value
}

// tokenFilter reads the filter at i, and sees that the mint is one.
func (c *call) tokenFilter(i int) (f tokenFilter, err error) {
	v := c.param(i)
	if v == nil || v.Type() != fastjson.TypeObject {
		return f, badParams("the filter must be an object with mint or programId")
	}
	mint, program := given(v.Get("mint")), given(v.Get("programId"))
	if (mint == nil) == (program == nil) {
		return f, badParams("the filter must have either mint or programId")
	}
	if mint == nil {
		key, err := keyOf(program, "programId")
		f.program = ledger.Some(key)
		if err == nil && !ledger.IsTokenProgram(key) {
			err = errTokenProgram
		}
		return f, err
	}
	key, err := keyOf(mint, "mint")
	f.mint = ledger.Some(key)
	return f, err
}

// tokensOf reads the parameters of a list of token accounts: a key, a filter and a configuration.
func (c *call) tokensOf(name string) (key ledger.Pubkey, filter tokenFilter, f form, err error) {
	if key, err = c.key(0, name); err != nil {
		return key, filter, f, err
	}
	if filter, err = c.tokenFilter(1); err != nil {
		return key, filter, f, err
	}
	config, err := c.config(2)
	if err == nil {
		f, err = formOf(config, asBinary)
	}
	return key, filter, f, err
}

// tokensByOwner answers the token accounts of a wallet.
func (c *call) tokensByOwner(dst []byte) ([]byte, error) { return c.appendTokens(dst, "owner") }

// tokensByDelegate answers the token accounts that somebody may spend from.
func (c *call) tokensByDelegate(dst []byte) ([]byte, error) {
	c.query.OfDelegate = true
	return c.appendTokens(dst, "delegate")
}

// appendTokens appends the token accounts of the first parameter, which the method calls by a name.
func (c *call) appendTokens(dst []byte, name string) ([]byte, error) {
	owner, filter, f, err := c.tokensOf(name)
	if err != nil {
		return dst, err
	}
	if _, err := c.newest(); err != nil {
		return dst, err
	}
	if filter.mint.Known {
		if _, err := c.mint(filter.mint.Value, errMintMissing); err != nil {
			return dst, err
		}
	}
	dst = append(c.appendContext(dst), '[')
	var after ledger.Opt[ledger.Pubkey]
	l := c.listing(&f, true)
	if err := c.x.Reserve(tokenPage * accountBytes); err != nil { // for the page that is read
		return dst, err
	}
	for more := true; more; more = after.Known {
		var found []ledger.TokenAnswer
		var v ledger.View
		found, after, v, err = c.door.config.Ledger.Tokens(c.query, owner, after, tokenPage)
		switch err = c.from(v, err); {
		case err != nil && !errors.Is(err, ledger.ErrNotFound):
			return dst, err
		case v.Lacks:
			return dst, elsewhere(codeExcluded, "the token accounts of %s are not all held here", owner)
		case err != nil:
			return append(dst, `]}`...), nil // nothing is known of the wallet
		}
		var taken []ledger.Account
		for i := range found {
			if filter.takes(&found[i].Account) {
				taken = append(taken, found[i].Account)
			}
		}
		if dst, err = c.appendAccounts(dst, l, taken); err != nil {
			return dst, err
		}
	}
	return append(dst, `]}`...), nil
}

// largestTokens is a list that the ledger has no index for.
func (c *call) largestTokens(dst []byte) ([]byte, error) {
	key, _, err := c.about("mint")
	if err == nil {
		err = elsewhere(codeExcluded, "%s: this node has no index of token accounts by their mints", key)
	}
	return dst, err
}
