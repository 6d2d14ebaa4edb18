package httpd

import (
	"strconv"

	"ledgerd/engine/ledger"
	"ledgerd/httpd/encode"
)

// What one element of a list takes at most while it is read and encoded, in bytes.
const (
	accountBytes = 512
	tokenBytes   = 1024
)

// account answers the account at a key.
func (r *request) account() error {
	key, err := ledger.ParsePubkey(r.variable("pubkey"))
	if err != nil {
		return errPubkey
	}
	a, v, err := r.server.config.Ledger.Account(r.params.query, key)
	if err != nil {
		return err
	}
	if r.params.facts { // which come with several accounts only
		q := ledger.Query{Commitment: r.params.query.Commitment, Head: v.Head}
		found, _, err := r.server.config.Ledger.Accounts(q, []ledger.Pubkey{key})
		if err != nil {
			return err
		}
		a = found[0]
	}
	if err := r.appendAccounts([]ledger.Account{a}, v); err != nil {
		return err
	}
	r.tagRecord(len(r.body))
	return nil
}

// balance answers the lamports at a key. The tag leaves out the slot, which moves on
// while the balance stays.
func (r *request) balance() error {
	key, err := ledger.ParsePubkey(r.variable("pubkey"))
	if err != nil {
		return errPubkey
	}
	a, v, err := r.server.config.Ledger.Account(r.params.query, key)
	if err != nil {
		return err
	}
	r.body = append(r.body, `{"pubkey":`...)
	r.body = encode.AppendKey(r.body, &a.Pubkey)
	r.body = append(r.body, `,"lamports":`...)
	r.body = strconv.AppendUint(r.body, uint64(a.Lamports), 10)
	r.tagRecord(len(r.body))
	r.body = append(r.body, `,"slot":`...)
	r.body = strconv.AppendUint(r.body, uint64(v.Tip().Slot), 10)
	r.body = append(r.body, '}')
	r.view = v
	return nil
}

// accounts answers many accounts at one slot, null for those that do not exist.
func (r *request) accounts() error {
	if len(r.params.keys) == 0 {
		return errNoKeys
	}
	found, v, err := r.server.config.Ledger.Accounts(r.params.query, r.params.keys)
	if err != nil {
		return err
	}
	r.body = append(r.body, `{"accounts":[`...)
	if err := r.appendAccounts(found, v); err != nil {
		return err
	}
	r.body = append(r.body, `]}`...)
	return nil
}

// tokens answers a page of the holdings of a wallet, ordered by token account.
func (r *request) tokens() error {
	owner, err := ledger.ParsePubkey(r.variable("pubkey"))
	if err != nil {
		return errPubkey
	}
	after, ok := encode.ParseCursor(r.params.cursor, encode.Tokens, &owner)
	if !ok {
		return errCursor
	}
	if err := r.reserve(r.params.limit * tokenBytes); err != nil {
		return err
	}
	tokens, more, v, err := r.server.config.Ledger.Tokens(r.params.query, owner, after, r.params.limit)
	if err != nil {
		return err
	}
	r.grow(len(tokens) * usualTokenText)
	r.body = append(r.body, `{"pubkey":`...)
	r.body = encode.AppendKey(r.body, &owner)
	r.body = append(r.body, `,"tokens":[`...)
	list := encode.List{Turn: r.server.config.Turn}
	var last *ledger.Pubkey
	for i := range tokens {
		t := &tokens[i]
		r.body = encode.AppendToken(list.Next(r.body), t)
		// Of the fields a token shows only its program can be unknown.
		r.partial |= t.Account.Unknown() & ledger.FieldOwner
		last = &t.Account.Pubkey
	}
	r.endList(encode.Tokens, &owner, last, more)
	r.view = v
	return nil
}

// program answers a page of the accounts a program owns, ordered by pubkey.
func (r *request) program() error {
	program, err := ledger.ParsePubkey(r.variable("program_id"))
	if err != nil {
		return errProgram
	}
	after, ok := encode.ParseCursor(r.params.cursor, encode.Members, &program)
	if !ok {
		return errCursor
	}
	perAccount, text := accountBytes, accountText
	if r.params.facts {
		perAccount, text = accountBytes+tokenBytes, accountText+usualTokenText
	}
	if err := r.reserve(r.params.limit * perAccount); err != nil {
		return err
	}
	accounts, more, v, err := r.server.config.Ledger.Program(r.params.query, program, after, r.params.limit)
	if err != nil {
		return err
	}
	r.grow(len(accounts) * text)
	r.body = append(r.body, `{"program_id":`...)
	r.body = encode.AppendKey(r.body, &program)
	r.body = append(r.body, `,"accounts":[`...)
	if err := r.appendAccounts(accounts, v); err != nil {
		return err
	}
	var last *ledger.Pubkey
	if len(accounts) > 0 {
		last = &accounts[len(accounts)-1].Pubkey
	}
	r.endList(encode.Members, &program, last, more)
	return nil
}

// How long the records of a list get, in bytes of text.
const (
	accountText    = 240 // at most
	usualTokenText = 420 // where nobody else may spend from it
)

// appendAccounts appends the records of accounts, null for those that do not exist, with their
// token and mint facts where the request asks for them: all at the version of one view.
func (r *request) appendAccounts(accounts []ledger.Account, v ledger.View) error {
	var facts mintFacts
	if r.params.facts {
		var err error
		if facts, err = r.mintsOf(accounts, v); err != nil {
			return err
		}
	}
	list := encode.List{Turn: r.server.config.Turn}
	for i := range accounts {
		a := &accounts[i]
		r.body = list.Next(r.body)
		switch {
		case !a.Exists():
			r.body = append(r.body, `null`...)
			continue
		case r.params.facts:
			r.body = encode.AppendAccountWithFacts(r.body, a, facts.ofHolding(a), facts[a.Pubkey])
		default:
			r.body = encode.AppendAccount(r.body, a)
		}
		r.partial |= a.Unknown()
	}
	r.view = v
	return nil
}

// endList closes a list with the cursor of the next page, null at the end.
func (r *request) endList(kind encode.Kind, owner, last *ledger.Pubkey, more bool) {
	r.body = append(r.body, `],"next_cursor":`...)
	if more && last != nil {
		r.body = append(r.body, '"')
		r.body = encode.AppendCursor(r.body, kind, owner, last)
		r.body = append(r.body, '"')
	} else {
		r.body = append(r.body, `null`...)
	}
	r.body = append(r.body, '}')
}

// tagRecord gives the reply the entity tag of the first n bytes of its body.
func (r *request) tagRecord(n int) {
	r.tag = encode.AppendTag(r.tag[:0], r.body[:n], r.partial)
}

// mintFacts are the known facts of mints by their keys.
type mintFacts map[ledger.Pubkey]*ledger.Mint

// ofHolding returns the facts of the mint that a token account holds, nil if nothing is known.
func (m mintFacts) ofHolding(a *ledger.Account) *ledger.Mint {
	if a.Token == nil {
		return nil
	}
	return m[a.Token.Mint]
}

// mintsOf returns the facts of the mints that accounts are or hold, at the version of a view.
func (r *request) mintsOf(accounts []ledger.Account, v ledger.View) (mintFacts, error) {
	facts := make(mintFacts)
	var keys []ledger.Pubkey
	want := func(k ledger.Pubkey) {
		if _, wanted := facts[k]; !wanted {
			facts[k] = nil
			keys = append(keys, k)
		}
	}
	for i := range accounts {
		switch a := &accounts[i]; {
		case !a.Exists():
		case a.Token != nil:
			want(a.Token.Mint)
		case a.Known&ledger.FieldOwner == 0 || a.Owner == ledger.TokenProgram || a.Owner == ledger.Token2022Program:
			want(a.Pubkey)
		}
	}
	mints, _, err := r.server.config.Ledger.Mints(ledger.Query{Commitment: v.Commitment, Head: v.Head}, keys)
	for i := range mints {
		facts[keys[i]] = mints[i]
	}
	return facts, err
}
