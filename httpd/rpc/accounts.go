package rpc

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/valyala/fastjson"

	"ledgerd/engine/ledger"
	"ledgerd/httpd/encode"
)

const (
	maxAccounts  = 100  // of one call of getMultipleAccounts
	accountBytes = 1024 // of an account while it is answered, without its data
	programPage  = 2000 // accounts of a program that are read at once
	// scanTime is how long the accounts of a program are looked through for one call. Each page of them has its own deadline, too.
	scanTime = 5 * time.Second
)

// errNoRoom says that there is no memory for the accounts of an answer. It matches ledger.ErrUnavailable.
var errNoRoom = fmt.Errorf("no room for the accounts: %w", ledger.ErrUnavailable)

// errOutside is the error of an account that exists, perhaps, and that this node does not hold.
func errOutside(key ledger.Pubkey) error {
	return elsewhere(codeExcluded, "account %s is outside what this node holds of the ledger", key)
}

// balance answers the lamports at a key, 0 where there is no account.
func (c *call) balance(dst []byte) ([]byte, error) {
	key, _, err := c.about("pubkey")
	if err != nil {
		return dst, err
	}
	a, v, err := c.door.config.Ledger.Account(c.query, key)
	if err = c.from(v, err); err != nil {
		if err = unlessAbsent(err, key); err != nil {
			return dst, err
		}
		a.Lamports = 0
	}
	return append(appendUint(c.appendContext(dst), uint64(a.Lamports)), '}'), nil
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
	key, f, _, err := c.shown("pubkey", asBinary)
	if err != nil {
		return dst, err
	}
	accounts, err := c.accountsAt([]ledger.Pubkey{key})
	if err != nil {
		return dst, err
	}
	dst, err = c.appendAccounts(c.appendContext(dst), &f, accounts, false)
	return append(dst, '}'), err
}

func (c *call) multipleAccounts(dst []byte) ([]byte, error) {
	list := c.param(0)
	if list == nil || list.Type() != fastjson.TypeArray {
		return dst, badParams("pubkeys must be an array")
	}
	texts, _ := list.Array()
	if len(texts) > maxAccounts {
		return dst, badParams("there may be %d pubkeys at most", maxAccounts)
	}
	keys := make([]ledger.Pubkey, len(texts))
	for i, text := range texts {
		var err error
		if keys[i], err = keyOf(text, "each pubkey"); err != nil {
			return dst, err
		}
	}
	config, err := c.config(1)
	if err != nil {
		return dst, err
	}
	f, err := formOf(config, asBase64)
	if err != nil {
		return dst, err
	}
	accounts, err := c.accountsAt(keys)
	if err != nil {
		return dst, err
	}
	dst, err = c.appendAccounts(append(c.appendContext(dst), '['), &f, accounts, false)
	return append(dst, `]}`...), err
}

// accountsAt returns accounts by their keys, which exist or exist nowhere.
func (c *call) accountsAt(keys []ledger.Pubkey) ([]ledger.Account, error) {
	accounts, v, err := c.door.config.Ledger.Accounts(c.query, keys)
	if err == nil && v.Lacks && len(keys) == 1 { // it may be fetched
		if _, _, err := c.door.config.Ledger.Account(c.query, keys[0]); err != nil {
			return nil, c.from(v, unlessAbsent(err, keys[0]))
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

// appendAccounts appends accounts with commas between them, null for those that do not exist, with their keys or without: each once there is
// memory for it.
func (c *call) appendAccounts(dst []byte, f *form, accounts []ledger.Account, keyed bool) ([]byte, error) {
	mints, err := c.mintsFor(f, accounts)
	if err != nil {
		return dst, err
	}
	list := encode.List{Turn: c.door.config.Turn}
	for i := range accounts {
		a := &accounts[i]
		if dst, err = c.x.Extend(dst, f.textBytes(a)); err != nil {
			return dst, errNoRoom
		}
		dst = list.Next(dst)
		if !a.Exists() {
			dst = append(dst, `null`...)
			continue
		}
		known := facts{own: mints[a.Pubkey]}
		if a.Token != nil {
			known = facts{held: mints[a.Token.Mint]}
		}
		if keyed {
			dst = append(dst, `{"pubkey":`...)
			dst = append(encode.AppendKey(dst, &a.Pubkey), `,"account":`...)
		}
		if dst, err = f.appendAccount(dst, a, known); err != nil {
			return dst, err
		}
		if keyed {
			dst = append(dst, '}')
		}
	}
	return dst, nil
}

// mintsFor returns the facts of the mints that accounts are or hold, where a form shows them.
func (c *call) mintsFor(f *form, accounts []ledger.Account) (map[ledger.Pubkey]*ledger.Mint, error) {
	if f.encoding != asParsed {
		return nil, nil
	}
	facts := make(map[ledger.Pubkey]*ledger.Mint)
	var keys []ledger.Pubkey
	for i := range accounts {
		a := &accounts[i]
		if !a.Exists() || a.Known&ledger.FieldOwner == 0 || !ledger.IsTokenProgram(a.Owner) {
			continue
		}
		mint := a.Pubkey
		if a.Token != nil {
			mint = a.Token.Mint
		}
		if _, wanted := facts[mint]; !wanted {
			facts[mint] = nil
			keys = append(keys, mint)
		}
	}
	return facts, c.learnMints(facts, keys)
}

// learnMints fills in the facts of mints at the version of the call.
func (c *call) learnMints(facts map[ledger.Pubkey]*ledger.Mint, keys []ledger.Pubkey) error {
	if len(keys) == 0 {
		return nil
	}
	mints, v, err := c.door.config.Ledger.Mints(c.query, keys)
	for i := range mints {
		facts[keys[i]] = mints[i]
	}
	return c.from(v, err)
}

// programAccounts answers the accounts of a program that its filters take, in the order of their keys.
func (c *call) programAccounts(dst []byte) ([]byte, error) {
	program, f, config, err := c.shown("programId", asBinary)
	if err != nil {
		return dst, err
	}
	withContext, err := isSet(config, "withContext")
	if err != nil {
		return dst, err
	}
	if _, err := isSet(config, "sortResults"); err != nil { // they always are sorted
		return dst, err
	}
	takes, err := selectionOf(member(config, "filters"))
	if err != nil {
		return dst, err
	}
	if withContext || takes.never {
		if _, err := c.newest(); err != nil {
			return dst, err
		}
	}
	if withContext {
		dst = c.appendContext(dst)
	}
	if dst, err = c.appendMembers(append(dst, '['), program, &f, takes); err != nil {
		return dst, err
	}
	if withContext {
		return append(dst, `]}`...), nil
	}
	return append(dst, ']'), nil
}

// appendMembers appends the accounts of a program, page by page from one version.
func (c *call) appendMembers(dst []byte, program ledger.Pubkey, f *form, takes *selection) ([]byte, error) {
	if takes.never {
		return dst, nil
	}
	if takes.looks {
		c.query.Where = &takes.data
	}
	var after ledger.Opt[ledger.Pubkey]
	var room []ledger.Account
	begin, most := len(dst), time.Now().Add(scanTime)
	for more := true; more; more = after.Known {
		if time.Now().After(most) {
			return dst, &callError{code: codeScan, message: "the accounts could not be looked through in time: ask with other filters"}
		}
		var v ledger.View
		var err error
		room, after, v, err = c.door.config.Ledger.Program(c.query, program, after, programPage, room)
		switch err = c.from(v, err); {
		case err != nil && !errors.Is(err, ledger.ErrNotFound):
			return dst, err
		case v.Lacks:
			return dst, elsewhere(codeExcluded, "the accounts of program %s are not all held here", program)
		case v.DataUnknown:
			return dst, elsewhere(codeExcluded, "the data of the accounts of program %s is not kept here: filters take --data", program)
		case err != nil:
			return dst, nil // nothing is known of the program
		}
		taken := room
		if takes.tokens {
			taken = slices.DeleteFunc(room, func(a ledger.Account) bool { return a.Token == nil })
		}
		if len(taken) > 0 && len(dst) > begin {
			dst = append(dst, ',')
		}
		switch dst, err = c.appendAccounts(dst, f, taken, true); {
		case errors.Is(err, errNoRoom):
			return dst, &callError{code: codeScan, message: "the accounts take more memory than this node gives an answer now: ask with filters or a dataSlice"}
		case err != nil:
			return dst, err
		}
	}
	return dst, nil
}
