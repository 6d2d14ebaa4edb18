package httpd

import (
	"cmp"
	"slices"
	"time"

	"ledgerd/engine/ledger"
	"ledgerd/httpd/encode"
)

// How long the records of a list get, in bytes of text. What was read for them takes no more.
const (
	accountText = 240 // at most
	tokenText   = 420 // without a delegate
	dataText    = 280 // of a usual token account: the length of longer data is known once it was read

	// pageData bounds the text of data on a page of a list, except for the first account, which may be longer.
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
	if err := r.appendAccounts([]ledger.Account{a}, v, encode.Members); err != nil {
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
	r.body = encode.AppendKey(r.body, `{"pubkey":`, &a.Pubkey)
	r.body = encode.AppendNumber(r.body, `,"lamports":`, a.Lamports)
	r.tagRecord()
	r.body = append(encode.AppendNumber(r.body, `,"slot":`, v.Tip().Slot), '}')
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
	err = r.appendAccounts(found, v, encode.Members)
	r.body = append(r.body, `]}`...)
	return err
}

// tokens answers a page of the holdings of a wallet, ordered by token account.
func (r *request) tokens() error {
	return r.list(encode.Tokens, "pubkey", errPubkey, `,"tokens":[`, tokenText, r.server.config.Ledger.Tokens)
}

const (
	// TokenPage is how many token accounts a request reads at once if it examines a whole list, in REST and at a door.
	TokenPage = 1000
	// ListTime is how long that may take before the answer begins.
	ListTime = 5 * time.Second
)

// holders answers the token accounts that hold the most of a mint, all at one version. It examines every token account of the mint.
func (r *request) holders() error {
	mint, err := r.key("pubkey", errPubkey)
	if err != nil {
		return err
	}
	if !r.server.config.IndexMints {
		return errNoMints
	}
	if err := r.reserve(TokenPage * 2 * tokenText); err != nil {
		return err
	}
	var largest []ledger.Account
	var v ledger.View
	room, q, deadline := r.server.answers.list(), r.params.query, r.now.Add(ListTime)
	after := ledger.Opt[ledger.Pubkey]{}
	for n := 1; n == 1 || after.Known; n++ {
		if err := r.TakePage(n); err != nil {
			return err
		}
		q.TokensOf = ledger.OfMint
		if room, after, v, err = r.server.config.Ledger.Tokens(q, mint, after, TokenPage, room); err != nil {
			return err
		}
		largest = KeepLargest(append(largest, room...), r.params.limit)
		q = goOn(v)
		q.Deadline = deadline
	}
	defer r.server.answers.reuseList(room)
	r.params.facts = true
	r.body = append(encode.AppendKey(r.body, `{"pubkey":`, &mint), `,"holders":[`...)
	err = r.appendAccounts(largest, v, encode.Members)
	r.body = append(r.body, `]}`...)
	return err
}

// KeepLargest returns those token accounts that hold the most, the largest first, in the memory of all. Of equal amounts the greater key comes
// first, as in Agave.
func KeepLargest(all []ledger.Account, most int) []ledger.Account {
	slices.SortFunc(all, func(a, b ledger.Account) int {
		return cmp.Or(cmp.Compare(b.Token.Amount, a.Token.Amount), b.Pubkey.Compare(&a.Pubkey))
	})
	return all[:min(len(all), most)]
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
	return r.list(encode.Members, "program_id", errProgram, `,"accounts":[`, text, r.server.config.Ledger.Program)
}

// Lister is what lists accounts by one key, as Program of a [Ledger] does.
type Lister func(q ledger.Query, of ledger.Pubkey, after ledger.Opt[ledger.Pubkey], limit int, room []ledger.Account) ([]ledger.Account, ledger.Opt[ledger.Pubkey], ledger.View, error)

// list answers a page of the accounts that are listed by the key in the path segment called name, once there is memory for records
// of text bytes each.
func (r *request) list(kind encode.Kind, name string, malformed error, member string, text int, from Lister) error {
	key, err := r.key(name, malformed)
	if err != nil {
		return err
	}
	after, ok := encode.ParseCursor(r.params.cursor, kind, &key)
	if !ok {
		return errCursor
	}
	if err := r.reserve(r.params.limit * 2 * text); err != nil {
		return err
	}
	accounts, next, v, err := from(r.params.query, key, after, r.params.limit, r.server.answers.list())
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
	r.body = append(append(r.body, `{"`...), name...)
	r.body = append(encode.AppendKey(r.body, `":`, &key), member...)
	err = r.appendAccounts(accounts, v, kind)
	r.body = encode.AppendOpt(r.body, `],"next_cursor":`, next, func(dst []byte, last ledger.Pubkey) []byte {
		return append(encode.AppendCursor(append(dst, '"'), kind, &key, &last), '"')
	})
	r.body = append(r.body, '}')
	return err
}

// appendAccounts appends the records of accounts as a kind of list shows them, null for those that do not exist, with their
// token and mint facts where these are wanted: all at the version of one view.
func (r *request) appendAccounts(accounts []ledger.Account, v ledger.View, kind encode.Kind) (err error) {
	var facts map[ledger.Pubkey]*ledger.Mint
	if r.params.facts || kind == encode.Tokens {
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
		var held *ledger.Mint
		if a.Token != nil {
			held = facts[a.Token.Mint]
		}
		switch {
		case !a.Exists():
			r.body = append(r.body, `null`...)
			continue
		case kind == encode.Tokens:
			r.body = encode.AppendToken(r.body, a, held)
			r.partial |= a.Unknown() & ledger.FieldOwner // of what it shows only that can be unknown
			continue
		case r.params.facts:
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

// reserveData reserves memory for the data of accounts, whose length is known only once it was read. Memory that is reserved for
// their records already counts for it, too.
func (r *request) reserveData(accounts []ledger.Account) error {
	bytes := 0
	for i := 0; r.params.data && i < len(accounts); i++ {
		bytes += r.params.slice.TextBytes(&accounts[i])
	}
	if bytes <= max(r.reserved, maxKeptBytes) {
		return nil
	}
	if !r.Fits(bytes) {
		return errMuchData
	}
	return r.Reserve(bytes - r.reserved)
}

// tagRecord gives the reply the entity tag of the body so far.
func (r *request) tagRecord() { r.tag = encode.AppendTag(r.tag[:0], r.body, r.partial) }

// MintsOf returns the facts of the mints that accounts are or hold, nil where nothing is known, and the keys of these mints. The head
// of the query must be the one at which the accounts were read.
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

// goOn returns a further query at the version of a view, with the deadline of the query that the view is of.
func goOn(v ledger.View) ledger.Query {
	return ledger.Query{Commitment: v.Commitment, Head: v.Head, Deadline: v.Deadline}
}
