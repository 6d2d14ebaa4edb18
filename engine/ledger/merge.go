package ledger

// Merge returns the account after the write w of provenance p on top of before (nil if nothing is
// known of it). The result shares w's pointers. It is a tombstone if w closes the account; w with 0 lamports on
// nothing gives nil.
func Merge(before *Account, w *AccountWrite, p Provenance) *Account {
	return MergeInto(new(Account), before, w, p)
}

// MergeInto is Merge for callers that apply many writes: it writes a new account to dst, which must be another pointer than
// before. If the result is before, or nil, dst stays as it was.
func MergeInto(dst, before *Account, w *AccountWrite, p Provenance) *Account {
	exists := before != nil && before.Exists()
	overrides := before == nil || before.Provenance.yieldsTo(p)
	var since Provenance
	switch {
	case before == nil:
		if w.Lamports == 0 {
			return nil
		}
	case !before.Since.yieldsTo(p):
		return before // w is from before the account was closed or opened again
	case overrides && w.Lamports == 0:
		if since = p; !exists {
			since = before.Since // it stays closed where it was
		}
		*dst = Account{Pubkey: before.Pubkey, Provenance: p, Since: since}
		return dst
	case !overrides && (!exists || w.Lamports == 0):
		return before // closed after this base state was taken, or opened after it
	case exists:
		since = before.Since
	default:
		since = p
	}
	if !exists {
		before = &unknown
	} else if w.OnlyRead() && p.ByBlock() && w.Lamports == before.Lamports {
		return mergeRead(dst, before, w, p)
	}
	mergeFields(dst, before, w, p)
	dst.Pubkey, dst.Since = w.Pubkey, since
	return dst
}

// mergeRead is MergeInto for a block that only read a live account. If the write has nothing new, the result is before with its old
// provenance: otherwise an account that every block reads would always be newer than what a node answers about it.
func mergeRead(dst, before *Account, w *AccountWrite, p Provenance) *Account {
	var after Account
	mergeFields(&after, before, w, p)
	after.Known, after.Data = after.Known|before.Known&FieldData, before.Data
	if after.Known == before.Known && after.SameState(before) {
		return before
	}
	*dst = after
	return dst
}

// unknown is an account of which nothing is known.
var unknown Account

// yieldsTo reports whether a value of provenance p is overridden by one of provenance newer.
func (p Provenance) yieldsTo(newer Provenance) bool { return newer.ByBlock() || newer >= p }

// mergeFields sets dst to before with the fields of w that override those of before.
func mergeFields(dst, before *Account, w *AccountWrite, p Provenance) {
	taken := w.Known &^ FieldData
	if w.TokenOwnerUnknown && before.Token == nil {
		taken &^= FieldToken // such a balance only changes a known holding
	}
	if !p.ByBlock() {
		for i, was := range before.fieldProvenance() {
			if f := Fields(1) << i; before.Known&f != 0 && !was.yieldsTo(p) {
				taken &^= f
			}
		}
	}
	*dst = *before
	dst.Known |= taken
	if !before.Exists() || before.Provenance.yieldsTo(p) {
		dst.Lamports, dst.Provenance = w.Lamports, p
		dst.setData(w)
	} else if before.Known&FieldData == 0 && before.Provenance.Slot() == p.Slot() && before.Lamports == w.Lamports {
		dst.setData(w)
	}
	if taken&FieldOwner != 0 {
		dst.Owner = w.Owner
	}
	if taken&FieldExecutable != 0 {
		dst.Executable = w.Executable
	}
	if taken&FieldRentEpoch != 0 {
		dst.RentEpoch = w.RentEpoch
	}
	if taken&FieldToken != 0 {
		dst.Token = mergeToken(before.Token, w)
	}
	if dst.Known&FieldOwner != 0 && !IsTokenProgram(dst.Owner) {
		dst.Token = nil // only the token programs own token accounts
	}
	dst.FieldProvenance = nil
	if dst.Known&^FieldData == taken && dst.Provenance == p {
		return
	}
	all := before.fieldProvenance()
	for i := range all {
		if taken&(1<<i) != 0 {
			all[i] = p
		}
	}
	if all != allOf(dst.Known, dst.Provenance) {
		dst.FieldProvenance = &all
	}
}

// setData sets the data to that of w, or to unknown if w has none.
func (a *Account) setData(w *AccountWrite) {
	a.Known = a.Known&^FieldData | w.Known&FieldData
	a.Data = w.Data
}

// mergeToken returns the token facts after w, which knows FieldToken.
func mergeToken(before *TokenAccount, w *AccountWrite) *TokenAccount {
	if w.Token == nil || w.Token.Details.Known {
		return w.Token
	}
	sameMint := before != nil && before.Mint == w.Token.Mint
	if w.TokenOwnerUnknown {
		if !sameMint {
			return nil
		}
		after := *before
		after.Amount = w.Token.Amount
		return &after
	}
	if !sameMint || before.Owner != w.Token.Owner || !before.Details.Known {
		return w.Token
	}
	after := *w.Token
	after.Details = before.Details
	return &after
}

// MergeMint returns the mint facts after w of provenance p on top of before (nil if nothing is known). Facts that w does
// not know stay; base state leaves facts that are newer.
func MergeMint(before *Mint, w Mint, p Provenance) *Mint {
	var after Mint
	if before != nil {
		after = *before
	}
	if before == nil || after.Provenance.yieldsTo(p) {
		after.Decimals, after.Provenance = w.Decimals, p
	}
	if w.Supply.Known && (!after.Supply.Known || after.SupplyProvenance.yieldsTo(p)) {
		after.Supply, after.SupplyProvenance = w.Supply, p
	}
	if w.Scaled.Known && (!after.Scaled.Known || after.ScaledProvenance.yieldsTo(p)) {
		after.Scaled, after.ScaledProvenance = w.Scaled, p
	}
	return &after
}

// MintAfter returns the facts of a mint after a write of its account, or a token balance, of provenance p. written are the facts
// in it, nil for no mint; closes says that it closes the account. account, nil if unknown, and before are the account and the facts
// before it. Base state from before the account was closed, opened again or known to be no mint changes nothing.
func MintAfter(account *Account, before, written *Mint, closes bool, p Provenance) *Mint {
	switch {
	case account != nil && (!account.Since.yieldsTo(p) || !account.Provenance.yieldsTo(p) && (closes || !account.Exists())):
		return before
	case written == nil && before != nil && !before.Provenance.yieldsTo(p):
		return before
	case written == nil || before == nil && account != nil && !account.fieldProvenance()[mintField].yieldsTo(p):
		return nil
	}
	return MergeMint(before, *written, p)
}

const mintField = 4 // the place of FieldMint in a FieldProvenance

// fieldProvenance returns the provenance of each known field; that of unknown ones is 0.
func (a *Account) fieldProvenance() FieldProvenance {
	if a.FieldProvenance != nil {
		return *a.FieldProvenance
	}
	return allOf(a.Known, a.Provenance)
}

// allOf returns the same provenance for all known fields.
func allOf(known Fields, p Provenance) (all FieldProvenance) {
	for i := range all {
		if known&(1<<i) != 0 {
			all[i] = p
		}
	}
	return all
}
