package httpd

import (
	"strconv"

	"ledgerd/engine/ledger"
	"ledgerd/httpd/encode"
)

// How long the records of a list get, in bytes of text. What was read for them takes no more.
const (
	accountText = 240 // at most
	tokenText   = 420 // where nobody else may spend from it
	dataText    = 280 // of a usual token account: what more there is, is known when it was read

	// pageData is how much text of data a page of a list has at most, but for its first account, which may be longer.
	pageData = 4 << 20
)

// findAccount returns the account at the key in the path.
func (r *request) findAccount() (ledger.Account, ledger.View, error) {
	key, err := r.key("pubkey", errPubkey)
	if err != nil {
		return ledger.Account{}, ledger.View{}, err
	}
	return r.server.config.Ledger.Account(r.params.query, key)
}

// account answers the account at a key.
func (r *request) account() error {
	a, v, err := r.findAccount()
	if err != nil {
		return err
	}
	if r.params.facts || r.params.data { // which come with several accounts only
		var found []ledger.Account
		if found, v, err = r.server.config.Ledger.Accounts(goOn(v), []ledger.Pubkey{a.Pubkey}); err != nil {
			return err
		}
		a = found[0]
	}
	if err := r.appendAccounts([]ledger.Account{a}, v); err != nil {
		return err
	}
	r.tagRecord()
	return nil
}

// balance answers the lamports at a key. The tag leaves out the slot, which moves on
// while the balance stays.
func (r *request) balance() error {
	a, v, err := r.findAccount()
	if err != nil {
		return err
	}
	r.view = v
	r.body = append(r.body, `{"pubkey":`...)
	r.body = encode.AppendKey(r.body, &a.Pubkey)
	r.body = append(r.body, `,"lamports":`...)
	r.body = strconv.AppendUint(r.body, uint64(a.Lamports), 10)
	r.tagRecord()
	r.body = append(r.body, `,"slot":`...)
	r.body = strconv.AppendUint(r.body, uint64(v.Tip().Slot), 10)
	r.body = append(r.body, '}')
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
	err = r.appendAccounts(found, v)
	r.body = append(r.body, `]}`...)
	return err
}

// tokens answers a page of the holdings of a wallet, ordered by token account.
func (r *request) tokens() error {
	owner, after, err := r.pageOf("pubkey", errPubkey, encode.Tokens, tokenText)
	if err != nil {
		return err
	}
	tokens, next, v, err := r.server.config.Ledger.Tokens(r.params.query, owner, after, r.params.limit, r.server.answers.list())
	if err != nil {
		return err
	}
	defer r.server.answers.reuseList(tokens)
	mints, _, err := MintsOf(tokens, r.server.config.Ledger, goOn(v))
	if err != nil {
		return err
	}
	r.view = v
	r.grow(len(tokens) * tokenText)
	r.body = append(r.body, `{"pubkey":`...)
	r.body = encode.AppendKey(r.body, &owner)
	r.body = append(r.body, `,"tokens":[`...)
	list := encode.List{Turn: r.server.config.Turn}
	for i := range tokens {
		r.body = encode.AppendToken(list.Next(r.body), &tokens[i], mints[tokens[i].Token.Mint])
		// Of the fields a token shows only its program can be unknown.
		r.partial |= tokens[i].Unknown() & ledger.FieldOwner
	}
	r.endList(encode.Tokens, &owner, next)
	return nil
}

// program answers a page of the accounts a program owns, ordered by pubkey.
func (r *request) program() error {
	text := accountText
	if r.params.facts {
		text += tokenText
	}
	if r.params.data {
		text += dataText
	}
	program, after, err := r.pageOf("program_id", errProgram, encode.Members, text)
	if err != nil {
		return err
	}
	accounts, next, v, err := r.server.config.Ledger.Program(r.params.query, program, after, r.params.limit, r.server.answers.list())
	if err != nil {
		return err
	}
	defer r.server.answers.reuseList(accounts)
	if v.DataUnknown {
		r.partial |= ledger.FieldData
	}
	if n := r.fittingData(accounts); n < len(accounts) {
		accounts, next = accounts[:n], ledger.Some(accounts[n-1].Pubkey)
	}
	r.grow(len(accounts) * text)
	r.body = append(r.body, `{"program_id":`...)
	r.body = encode.AppendKey(r.body, &program)
	r.body = append(r.body, `,"accounts":[`...)
	err = r.appendAccounts(accounts, v)
	r.endList(encode.Members, &program, next)
	return err
}

// pageOf returns the key in the path whose list is asked for and the last one that an earlier page
// showed, once there is memory for a page of records with so much text.
func (r *request) pageOf(name string, malformed error, kind encode.Kind, text int) (key ledger.Pubkey, after ledger.Opt[ledger.Pubkey], err error) {
	if key, err = r.key(name, malformed); err != nil {
		return key, after, err
	}
	after, ok := encode.ParseCursor(r.params.cursor, kind, &key)
	if !ok {
		return key, after, errCursor
	}
	return key, after, r.reserve(r.params.limit * 2 * text)
}

// endList closes a list with the cursor of the next page, null at the end.
func (r *request) endList(kind encode.Kind, of *ledger.Pubkey, next ledger.Opt[ledger.Pubkey]) {
	r.body = append(r.body, ']', ',')
	r.appendNext("next_cursor", next.Known, func(dst []byte) []byte { return encode.AppendCursor(dst, kind, of, &next.Value) })
	r.body = append(r.body, '}')
}

// appendNext appends the member that says where the next page begins, null at the end.
func (r *request) appendNext(name string, more bool, appendNext func(dst []byte) []byte) {
	r.body = append(r.body, '"')
	r.body = append(r.body, name...)
	r.body = append(r.body, `":`...)
	if more {
		r.body = append(appendNext(append(r.body, '"')), '"')
	} else {
		r.body = append(r.body, `null`...)
	}
}

// appendAccounts appends the records of accounts, null for those that do not exist, with their
// token and mint facts where the request asks for them: all at the version of one view.
func (r *request) appendAccounts(accounts []ledger.Account, v ledger.View) (err error) {
	var facts map[ledger.Pubkey]*ledger.Mint
	if r.params.facts {
		if facts, _, err = MintsOf(accounts, r.server.config.Ledger, goOn(v)); err != nil {
			return err
		}
	}
	if err := r.reserveData(accounts); err != nil {
		return err
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
			var held *ledger.Mint
			if a.Token != nil {
				held = facts[a.Token.Mint]
			}
			r.body = encode.AppendAccountWithFacts(r.body, a, held, facts[a.Pubkey])
		default:
			r.body = encode.AppendAccount(r.body, a)
		}
		r.partial |= a.Unknown()
		if r.params.data {
			r.body = encode.AppendData(r.body, a, r.params.slice)
			r.partial |= ledger.FieldData &^ a.Known
		}
	}
	r.view = v
	return nil
}

// fittingData returns how many accounts of a page are answered with their data.
func (r *request) fittingData(accounts []ledger.Account) int {
	for i, bytes := 0, 0; r.params.data && i < len(accounts); i++ {
		if bytes += r.params.slice.TextBytes(&accounts[i]); bytes > pageData && i > 0 {
			return i
		}
	}
	return len(accounts)
}

// reserveData makes sure of memory for the data of accounts, which is known only when it was read.
func (r *request) reserveData(accounts []ledger.Account) error {
	bytes := 0
	for i := 0; r.params.data && i < len(accounts); i++ {
		bytes += r.params.slice.TextBytes(&accounts[i])
	}
	if bytes <= max(r.reserved, maxKeptBytes) {
		return nil
	}
	return r.Reserve(bytes - r.reserved)
}

// tagRecord gives the reply the entity tag of the body so far.
func (r *request) tagRecord() { r.tag = encode.AppendTag(r.tag[:0], r.body, r.partial) }

// MintsOf returns the facts of the mints that accounts are or hold, nil where nothing is known, and the keys of these mints. The query must name the
// version that the accounts were read at, by its head.
func MintsOf(accounts []ledger.Account, l Ledger, q ledger.Query) (facts map[ledger.Pubkey]*ledger.Mint, keys []ledger.Pubkey, err error) {
	facts = make(map[ledger.Pubkey]*ledger.Mint)
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
		case a.Known&ledger.FieldOwner == 0 || ledger.IsTokenProgram(a.Owner):
			want(a.Pubkey)
		}
	}
	if len(keys) == 0 {
		return facts, nil, nil
	}
	mints, _, err := l.Mints(q, keys)
	for i := range mints {
		facts[keys[i]] = mints[i]
	}
	return facts, keys, err
}

// goOn returns the query for more of a view, by the deadline of the one that the view is of.
func goOn(v ledger.View) ledger.Query {
	return ledger.Query{Commitment: v.Commitment, Head: v.Head, Deadline: v.Deadline}
}
