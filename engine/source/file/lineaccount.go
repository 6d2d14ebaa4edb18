package file

import (
	"errors"
	"fmt"

	"ledgerd/engine/ledger"
	"ledgerd/engine/source/nodejson"
)

// readAccounts reads the accounts of a line. One with mint facts but no lamports teaches these apart from any account.
func (d *lineDecoder) readAccounts(b *ledger.Block) {
	b.Accounts, b.Mints = b.Accounts[:0], nil
	d.enter('[', "accounts")
	front := d.at
	for i := 0; d.item(']'); i++ {
		w, hasLamports := d.readAccount()
		switch {
		case d.err != nil:
			d.err = fmt.Errorf("account %d: %w", i, d.err)
		case hasLamports:
			b.Accounts = appendItem(&d.scanner, front, b.Accounts, w)
		default:
			b.Mints = appendItem(&d.scanner, front, b.Mints, ledger.MintWrite{Pubkey: w.Pubkey, Mint: *w.Mint})
		}
	}
}

// readAccount reads an account, which carries its data or its facts. Without lamports it has mint facts.
func (d *lineDecoder) readAccount() (w ledger.AccountWrite, hasLamports bool) {
	var data, bytes []byte
	hasKey, hasFacts := false, false
	d.enter('{', "accounts")
	for d.field() {
		switch string(d.name) {
		case "pubkey":
			w.Pubkey, hasKey = d.key("pubkey"), true
		case "lamports":
			w.Lamports, hasLamports = ledger.Lamports(d.uint("lamports", 64)), true
		case "owner":
			w.Owner = d.key("owner")
			w.Known |= ledger.FieldOwner
		case "executable":
			w.Executable = d.bool("executable")
			w.Known |= ledger.FieldExecutable
		case "rent_epoch":
			w.RentEpoch = d.uint("rent_epoch", 64)
			w.Known |= ledger.FieldRentEpoch
		case "read_only":
			w.ReadOnly = d.bool("read_only")
		case "data":
			data = d.raw()
		case "bytes":
			bytes = d.raw()
		case "token":
			d.readToken(&w)
			hasFacts = true
		case "mint":
			d.readMint(&w)
			hasFacts = true
		default:
			d.raw()
		}
	}
	switch {
	case d.err != nil:
	case !hasKey:
		d.fail(nodejson.Missing("pubkey"))
	case !hasLamports && w.Mint == nil:
		d.fail(nodejson.Missing("lamports"))
	case data != nil && hasFacts:
		d.fail(errors.New("it has both data and facts"))
	}
	if raw := d.takeData(&w, "data", data); data != nil {
		w.SetTokenFacts(raw)
	}
	d.takeData(&w, "bytes", bytes) // beside facts: they tell none themselves
	return w, hasLamports
}

// takeData takes the data of an account from its field, and returns it.
func (d *lineDecoder) takeData(w *ledger.AccountWrite, field string, text []byte) []byte {
	if text == nil || d.err != nil {
		return nil
	}
	raw, err := d.data.DecodeLine(text)
	switch {
	case w.Known&ledger.FieldOwner == 0:
		d.fail(errors.New(field + " without owner"))
	case err != nil:
		d.fail(err)
	default:
		w.SetData(raw, d.data.Held)
	}
	return raw
}

// readToken reads what the account is as a token account: an object, or false for none.
func (d *lineDecoder) readToken(w *ledger.AccountWrite) {
	w.Known |= ledger.FieldToken
	w.Token, w.TokenOwnerUnknown = nil, false
	if d.literal("false") {
		return
	}
	var f nodejson.TokenFacts[[]byte]
	d.enter('{', "token")
	for d.field() {
		switch string(d.name) {
		case "mint":
			f.Mint = new(d.text("mint"))
		case "owner":
			f.Owner = new(d.text("owner"))
		case "amount":
			f.Amount = new(d.text("amount"))
		case "state":
			f.State = new(d.text("state"))
		case "delegate":
			f.Delegate = new(d.text("delegate"))
		case "delegated_amount":
			f.DelegatedAmount = new(d.text("delegated_amount"))
		case "close_authority":
			f.CloseAuthority = new(d.text("close_authority"))
		case "is_native":
			f.IsNative = new(d.bool("is_native"))
		default:
			d.raw()
		}
	}
	if err := f.Teach(w); err != nil {
		d.fail(fmt.Errorf("token: %w", err))
	}
}

// readMint reads what the account is as a mint: an object, or false for none.
func (d *lineDecoder) readMint(w *ledger.AccountWrite) {
	w.Known |= ledger.FieldMint
	w.Mint = nil
	if d.literal("false") {
		return
	}
	var f nodejson.MintFacts[[]byte]
	d.enter('{', "mint")
	for d.field() {
		switch string(d.name) {
		case "decimals":
			f.Decimals = new(uint8(d.uint("decimals", 8)))
		case "supply":
			f.Supply = new(d.text("supply"))
		case "scaled":
			f.Scaled = new(d.bool("scaled"))
		default:
			d.raw()
		}
	}
	m, err := f.Mint()
	if err != nil {
		d.fail(fmt.Errorf("mint: %w", err))
	}
	w.Mint = &m
}
