package rpc

import (
	"errors"
	"fmt"
	"slices"

	"ledgerd/engine/ledger"
	"ledgerd/httpd"
	"ledgerd/httpd/encode"
)

const (
	maxAccounts  = 100  // of one call of getMultipleAccounts
	accountBytes = 1024 // of an account while it is answered, without its data
	usualText    = 300  // about what it is answered in
)

// errNoRoom says that there is no memory for the accounts of an answer. It matches ledger.ErrUnavailable.
var errNoRoom = fmt.Errorf("no room for the accounts: %w", ledger.ErrUnavailable)

// errOutside is the error of an account that exists, perhaps, and that this node does not hold.
func errOutside(key ledger.Pubkey) error {
	return elsewhere(codeExcluded, "account %s is outside what this node holds of the ledger", key)
}

// balance answers the lamports at a key, 0 where there is no account.
func (c *call) balance(dst []byte) ([]byte, error) {
	key, _ := c.about("pubkey")
	accounts, err := c.accountsAt([]ledger.Pubkey{key})
	if err != nil {
		return dst, err
	}
	return append(encode.AppendNumber(c.appendContext(dst), "", accounts[0].Lamports), '}'), nil
}

// unlessAbsent returns nil if an error says that no account exists at a key.
func unlessAbsent(err error, key ledger.Pubkey) error {
	absent, ok := errors.AsType[*ledger.NotFoundError](err)
	switch {
	case !ok:
		return err
	case absent.Absence == ledger.AccountNotIndexed, absent.Absence == ledger.OwnerNotIndexed:
		return errOutside(key)
	}
	return nil
}

func (c *call) accountInfo(dst []byte) ([]byte, error) {
	key, f, _ := c.shown("pubkey", asBinary)
	accounts, err := c.accountsAt([]ledger.Pubkey{key})
	if err != nil {
		return dst, err
	}
	dst, err = c.appendAccounts(c.appendContext(dst), c.listing(&f, false), accounts)
	return append(dst, '}'), err
}

func (c *call) multipleAccounts(dst []byte) ([]byte, error) {
	texts := c.list(c.param(0), maxAccounts, "pubkeys")
	keys := make([]ledger.Pubkey, len(texts))
	for i, text := range texts {
		keys[i] = c.key(text, "each pubkey")
	}
	f := c.readForm(c.config(1), asBase64)
	accounts, err := c.accountsAt(keys)
	if err != nil {
		return dst, err
	}
	dst, err = c.appendAccounts(append(c.appendContext(dst), '['), c.listing(&f, false), accounts)
	return append(dst, `]}`...), err
}

// accountsAt returns accounts by their keys, which exist or exist nowhere.
func (c *call) accountsAt(keys []ledger.Pubkey) ([]ledger.Account, error) {
	if c.wrong != nil {
		return nil, c.wrong
	}
	accounts, v, err := c.door.config.Ledger.Accounts(c.query, keys)
	if err == nil && v.Lacks && len(keys) == 1 { // it may be fetched
		c.query.Deadline = v.Deadline
		if _, _, err := c.door.config.Ledger.Account(c.query, keys[0]); err != nil { // perhaps that it exists nowhere
			return []ledger.Account{{Pubkey: keys[0]}}, c.from(v, unlessAbsent(err, keys[0]))
		}
		accounts, v, err = c.door.config.Ledger.Accounts(c.query, keys)
	}
	if err = c.from(v, err); err != nil {
		return nil, err
	}
	for i := range accounts {
		if v.Lacks && v.Misses(&accounts[i]) {
			return nil, errOutside(keys[i])
		}
	}
	return accounts, nil
}

// listing is a list of accounts while it is encoded.
type listing struct {
	encode.List
	*form
	keyed bool // each account comes with its key
	fixed bool // an answer that is no longer empty does not grow
}

// listing returns an empty list.
func (c *call) listing(f *form, keyed bool) *listing {
	return &listing{encode.List{Turn: c.door.config.Turn}, f, keyed, false}
}

// errMuchData says that accounts that a client named never fit into an answer: it is not told to try again.
var errMuchData = &callError{code: codeScan, message: "the accounts take more memory than this node gives an answer: ask for fewer, or with a dataSlice"}

// appendAccounts appends accounts to a list, as appendKnown does. There is room for all of them at once, if there is memory for that: an answer that grows
// account by account is made in one piece of memory after the other. What is compressed may take much less than its data.
func (c *call) appendAccounts(dst []byte, l *listing, accounts []ledger.Account) ([]byte, error) {
	known, err := c.mintsFor(l.form, accounts)
	if err != nil {
		return dst, err
	}
	need := l.allBytes(accounts)
	if l.encoding != asZstd {
		dst = c.x.Foresee(dst, need)
	}
	dst, _, err = c.appendKnown(dst, l, accounts, known)
	if errors.Is(err, errNoRoom) && !c.x.Fits(need) {
		err = errMuchData
	}
	return dst, err
}

// allBytes is about what all of some accounts are answered in.
func (f *form) allBytes(accounts []ledger.Account) int {
	need := accountBytes - usualText // the last one wants more room than it takes, as each does
	for i := range accounts {
		if a := &accounts[i]; a.Exists() {
			need += f.textBytes(a) - accountBytes + usualText
		} else {
			need += len(`,null`)
		}
	}
	return need
}

// appendKnown appends accounts to a list, whose mints are known, null for those that do not exist: each once there is memory for it. It returns how many.
func (c *call) appendKnown(dst []byte, l *listing, accounts []ledger.Account, known mints) (_ []byte, n int, err error) {
	for n := range accounts {
		a := &accounts[n]
		need := l.textBytes(a)
		if l.fixed && len(dst) > 0 && cap(dst)-len(dst) < need {
			return dst, n, errNoRoom
		}
		if dst, err = c.x.Extend(dst, need); err != nil {
			return dst, n, errNoRoom
		}
		of := known.of(a)
		if l.keyed && of.held == noMint { // a list in jsonParsed has only what can be parsed, as in Agave
			continue
		}
		dst = l.Next(dst)
		if !a.Exists() {
			dst = append(dst, `null`...)
			continue
		}
		if l.keyed {
			dst = append(encode.AppendKey(dst, `{"pubkey":`, &a.Pubkey), `,"account":`...)
		}
		if dst, err = l.appendAccount(dst, a, of); err != nil {
			return dst, n, err
		}
		if l.keyed {
			dst = append(dst, '}')
		}
	}
	return dst, len(accounts), nil
}

// mints are facts of mints: nil where nothing is known.
type mints map[ledger.Pubkey]*ledger.Mint

// noMint stands for the facts of a mint that was closed, whose key another account may have since: token accounts without tokens may outlive it.
var noMint = new(ledger.Mint)

// nativeMint are the facts of wrapped SOL's mint that Agave knows without an account there.
var nativeMint = &ledger.Mint{Decimals: 9}

// of returns what is known of an account's mint, or of the account as one.
func (m mints) of(a *ledger.Account) facts {
	switch {
	case a.Token != nil && a.Token.Mint == ledger.NativeMint && m[ledger.NativeMint] == nil:
		return facts{held: nativeMint}
	case a.Token != nil:
		return facts{held: m[a.Token.Mint]}
	case m[a.Pubkey] == noMint:
		return facts{}
	}
	return facts{own: m[a.Pubkey]}
}

// isNoMint reports whether an account of which no facts of a mint are known is known to be none.
func isNoMint(a *ledger.Account) bool {
	return a.Known&ledger.FieldOwner != 0 && !ledger.IsTokenProgram(a.Owner) || a.Known&ledger.FieldMint != 0 || a.Token != nil
}

// mintsFor returns the facts of the mints that accounts are or hold, where a form shows them.
func (c *call) mintsFor(f *form, accounts []ledger.Account) (mints, error) {
	if f.encoding != asParsed {
		return nil, nil
	}
	known, keys, err := httpd.MintsOf(accounts, c.door.config.Ledger, c.query)
	if err != nil {
		return nil, err
	}
	unknown := slices.DeleteFunc(keys, func(k ledger.Pubkey) bool { return known[k] != nil || k == ledger.NativeMint })
	if len(unknown) == 0 {
		return known, nil
	}
	found, v, err := c.door.config.Ledger.Accounts(c.query, unknown)
	for i := range found {
		if a := &found[i]; a.Exists() && isNoMint(a) || !a.Exists() && !(v.Lacks && v.Misses(a)) {
			known[unknown[i]] = noMint
		}
	}
	return known, c.from(v, err)
}

// factsOf returns the facts of a mint at the version of the call, nil if nothing is known.
func (c *call) factsOf(key ledger.Pubkey) (*ledger.Mint, error) {
	known, v, err := c.door.config.Ledger.Mints(c.query, []ledger.Pubkey{key})
	if err = c.from(v, err); err != nil {
		return nil, err
	}
	return known[0], nil
}
