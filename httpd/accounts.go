package httpd

import (
	"strconv"

	"ledgerd/engine/ledger"
)

// account answers the account at a key.
func (r *request) account() error {
	key, err := ledger.ParsePubkey(r.variable)
	if err != nil {
		return errPubkey
	}
	return r.showAccount(&key)
}

func (r *request) showAccount(key *ledger.Pubkey) error {
	a, v, err := r.server.ledger.Account(r.params.query, *key)
	if err != nil {
		return err
	}
	// A key has one text only, so what was asked by need not be encoded again.
	r.body = appendAccountAs(r.body, &a, r.variable)
	r.answered(v)
	r.partial = a.Unknown()
	r.tagBody()
	return nil
}

// balance answers the lamports at a key. The tag leaves out the slot, which moves on
// while the balance stays.
func (r *request) balance() error {
	key, err := ledger.ParsePubkey(r.variable)
	if err != nil {
		return errPubkey
	}
	a, v, err := r.server.ledger.Account(r.params.query, key)
	if err != nil {
		return err
	}
	r.body = append(r.body, `{"pubkey":`...)
	r.body = appendKey(r.body, &a.Pubkey)
	r.body = append(r.body, `,"lamports":`...)
	r.body = strconv.AppendUint(r.body, uint64(a.Lamports), 10)
	r.tagRecord(len(r.body))
	r.body = append(r.body, `,"slot":`...)
	r.body = strconv.AppendUint(r.body, uint64(v.Tip().Slot), 10)
	r.body = append(r.body, '}')
	r.answered(v)
	return nil
}

// accounts answers many accounts at one slot, null for those that do not exist.
func (r *request) accounts() error {
	if len(r.params.keys) == 0 {
		return errNoKeys
	}
	found, v, err := r.server.ledger.Accounts(r.params.query, r.params.keys)
	if err != nil {
		return err
	}
	r.body = append(r.body, `{"accounts":[`...)
	var list accountList
	for i := range found {
		r.body = element(r.body, i)
		if a := &found[i]; a.Exists() {
			r.body = list.append(r.body, a)
			r.partial |= a.Unknown()
		} else {
			r.body = append(r.body, `null`...)
		}
	}
	r.body = append(r.body, `]}`...)
	r.answered(v)
	return nil
}

// tokens answers a page of the holdings of a wallet, ordered by token account.
func (r *request) tokens() error {
	owner, err := ledger.ParsePubkey(r.variable)
	if err != nil {
		return errPubkey
	}
	after, err := parseCursor(r.params.cursor, tokenList, &owner)
	if err != nil {
		return err
	}
	tokens, more, v, err := r.server.ledger.Tokens(r.params.query, owner, after, r.listLimit())
	if err != nil {
		return err
	}
	r.expect(len(tokens) * usualTokenBytes)
	r.body = append(r.body, `{"pubkey":`...)
	r.body = appendKey(r.body, &owner)
	r.body = append(r.body, `,"tokens":[`...)
	var last *ledger.Pubkey
	for i := range tokens {
		t := &tokens[i]
		r.body = appendToken(element(r.body, i), t)
		// Of the fields a token shows only its program can be unknown.
		r.partial |= t.Account.Unknown() & ledger.FieldOwner
		last = &t.Account.Pubkey
	}
	r.endList(tokenList, &owner, last, more)
	r.answered(v)
	return nil
}

// program answers a page of the accounts a program owns, ordered by pubkey.
func (r *request) program() error {
	program, err := ledger.ParsePubkey(r.variable)
	if err != nil {
		return errProgram
	}
	after, err := parseCursor(r.params.cursor, programList, &program)
	if err != nil {
		return err
	}
	accounts, more, v, err := r.server.ledger.Program(r.params.query, program, after, r.listLimit())
	if err != nil {
		return err
	}
	r.expect(len(accounts) * (accountTextBytes + len(",")))
	r.body = append(r.body, `{"program_id":`...)
	r.body = appendKey(r.body, &program)
	r.body = append(r.body, `,"accounts":[`...)
	var list accountList
	var last *ledger.Pubkey
	for i := range accounts {
		a := &accounts[i]
		r.body = list.append(element(r.body, i), a)
		r.partial |= a.Unknown()
		last = &a.Pubkey
	}
	r.endList(programList, &program, last, more)
	r.answered(v)
	return nil
}

func (r *request) listLimit() int {
	if r.params.limit == 0 {
		return defaultListLimit
	}
	return r.params.limit
}

// endList closes a list with the cursor of the next page, null at the end.
func (r *request) endList(l list, owner, last *ledger.Pubkey, more bool) {
	r.body = append(r.body, `],"next_cursor":`...)
	if more && last != nil {
		r.body = append(r.body, '"')
		r.body = appendCursor(r.body, l, owner, last)
		r.body = append(r.body, '"')
	} else {
		r.body = append(r.body, `null`...)
	}
	r.body = append(r.body, '}')
}
