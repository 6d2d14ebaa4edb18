package ledger

// Merge returns the account after the write w, taught by t, was learned on top of
// before (nil if nothing was held). The result shares w's pointers. It is a
// tombstone if w closes the account; w with 0 lamports on nothing gives nil.
func Merge(before *Account, w *AccountWrite, t Provenance) *Account {
	return MergeInto(new(Account), before, w, t)
}

// MergeInto is Merge for who applies many writes: an account that it makes is put into the room
// given, which must not be before. Where before stands, or nothing is held, it leaves the room alone.
func MergeInto(room, before *Account, w *AccountWrite, t Provenance) *Account {
	held := before != nil && before.Exists()
	// A block overrides whatever was taught; base state only what is not newer.
	overrides := t.ByBlock() || before == nil || t >= before.Provenance

	var since Provenance
	switch {
	case before == nil:
		if w.Lamports == 0 {
			return nil
		}
	case !t.ByBlock() && t < before.Since:
		return before // of an earlier life
	case overrides && w.Lamports == 0:
		if since = t; !held {
			since = before.Since // it stays closed where it was
		}
		*room = Account{Pubkey: before.Pubkey, Provenance: t, Since: since}
		return room
	case overrides:
	case !held || w.Lamports == 0:
		return before // closed after this base state was taken, or opened after it
	}
	switch {
	case held:
		since = before.Since
	case before != nil:
		since = t
	}
	if !held {
		before = &unheld
	}
	if t.ByBlock() && w.Known&AccountFields == AccountFields && before.Known&^w.Known == 0 && !w.TokenOwnerUnknown {
		*room = Account{
			Pubkey: w.Pubkey, Owner: w.Owner, Lamports: w.Lamports, RentEpoch: w.RentEpoch,
			Executable: w.Executable, Known: w.Known, Since: since, Provenance: t,
		}
		if w.Token != nil && IsTokenProgram(w.Owner) {
			room.Token = mergeToken(before.Token, w)
		}
		return room
	}
	mergeFields(room, before, w, t)
	room.Pubkey, room.Since = w.Pubkey, since
	return room
}

// unheld is an account of which nothing is known.
var unheld Account

// mergeFields makes after what before is with the fields of w that t may teach.
func mergeFields(after, before *Account, w *AccountWrite, t Provenance) {
	overrides := func(field Provenance) bool { return t.ByBlock() || t >= field }
	*after = Account{}
	was, now := before.fieldsTaught(), FieldProvenance{}
	lamportsTaught := t
	if after.Lamports = w.Lamports; before.Exists() && !overrides(before.Provenance) {
		after.Lamports, lamportsTaught = before.Lamports, before.Provenance
	}
	shows := w.Known
	if w.TokenOwnerUnknown && before.Token == nil {
		shows &^= FieldToken // it would change a holding, and none is known
	}
	// takes decides one field: true for the write's value, false for the old one.
	takes := func(f Fields, old Provenance, teacher *Provenance) bool {
		*teacher = old
		if shows&f == 0 || (before.Known&f != 0 && !overrides(old)) {
			after.Known |= before.Known & f
			return false
		}
		after.Known |= f
		*teacher = t
		return true
	}
	if after.Owner = before.Owner; takes(FieldOwner, was.Owner, &now.Owner) {
		after.Owner = w.Owner
	}
	if after.Executable = before.Executable; takes(FieldExecutable, was.Executable, &now.Executable) {
		after.Executable = w.Executable
	}
	if after.RentEpoch = before.RentEpoch; takes(FieldRentEpoch, was.RentEpoch, &now.RentEpoch) {
		after.RentEpoch = w.RentEpoch
	}
	if after.Token = before.Token; takes(FieldToken, was.Token, &now.Token) {
		after.Token = mergeToken(before.Token, w)
	}
	takes(FieldMint, was.Mint, &now.Mint) // the facts are held apart
	if after.Known&FieldOwner != 0 && !IsTokenProgram(after.Owner) {
		after.Token = nil // only the token programs own token accounts
	}
	after.Provenance = lamportsTaught
	if now != (FieldProvenance{lamportsTaught, lamportsTaught, lamportsTaught, lamportsTaught, lamportsTaught}).only(after.Known) {
		earlier := now // so that the usual account, which has none, allocates nothing
		after.FieldProvenance = &earlier
	}
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

// MergeMint returns the mint facts after w, taught by t, was learned on top of before
// (nil if nothing was held). Facts w does not know stay; base state older than what
// taught a fact leaves it.
func MergeMint(before *Mint, w Mint, t Provenance) *Mint {
	var after Mint
	overrides := func(known bool, taught Provenance) bool { return !known || t.ByBlock() || t >= taught }
	if before != nil {
		after = *before
	}
	if overrides(before != nil, after.Provenance) {
		after.Decimals, after.Provenance = w.Decimals, t
	}
	if w.Supply.Known && overrides(after.Supply.Known, after.SupplyProvenance) {
		after.Supply, after.SupplyProvenance = w.Supply, t
	}
	if w.Scaled.Known && overrides(after.Scaled.Known, after.ScaledProvenance) {
		after.Scaled, after.ScaledProvenance = w.Scaled, t
	}
	return &after
}

// MintAfter returns the facts of a mint, held as before, after its account or a token balance said that it is the
// mint says, nil for none. Its account stood as held, nil if it is not held, and is closed or not by
// the same. Base state from before the account was closed, opened again or said to be no mint teaches nothing.
func MintAfter(held *Account, before, says *Mint, closes bool, t Provenance) *Mint {
	older := func(than Provenance) bool { return !t.ByBlock() && t < than }
	switch {
	case held != nil && (older(held.Since) || older(held.Provenance) && (closes || !held.Exists())):
		return before
	case says == nil && before != nil && older(before.Provenance):
		return before
	case says == nil || before == nil && held != nil && older(held.fieldsTaught().Mint):
		return nil
	}
	return MergeMint(before, *says, t)
}

// fieldsTaught returns who taught each known field; unknown ones are 0.
func (a *Account) fieldsTaught() FieldProvenance {
	if a.FieldProvenance != nil {
		return *a.FieldProvenance
	}
	return FieldProvenance{a.Provenance, a.Provenance, a.Provenance, a.Provenance, a.Provenance}.only(a.Known)
}

// only returns e with the fields outside known set to 0.
func (e FieldProvenance) only(known Fields) FieldProvenance {
	if known&FieldOwner == 0 {
		e.Owner = 0
	}
	if known&FieldExecutable == 0 {
		e.Executable = 0
	}
	if known&FieldRentEpoch == 0 {
		e.RentEpoch = 0
	}
	if known&FieldToken == 0 {
		e.Token = 0
	}
	if known&FieldMint == 0 {
		e.Mint = 0
	}
	return e
}
