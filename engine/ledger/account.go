package ledger

// Fields is a set of account fields, those whose value is known. Lamports are always
// known and have no bit.
type Fields uint8

const (
	FieldOwner Fields = 1 << iota
	FieldExecutable
	FieldRentEpoch
	FieldToken // the token facts are known: Token, or that it is no token account
	FieldMint  // the mint facts are known: Mint, or that it is no mint
	FieldData  // the data is known: Data

	// FieldsShown are the fields an account record shows and may have to name as unknown.
	FieldsShown = FieldOwner | FieldExecutable | FieldRentEpoch
	// FieldsAll are the fields that a source of whole accounts knows. FieldData is not among them, since data is held for few programs.
	FieldsAll = FieldsShown | FieldToken | FieldMint
)

// AccountWrite is one write of an account as far as its source shows it.
// Lamports 0 closes the account, whatever else the write says.
type AccountWrite struct {
	Pubkey     Pubkey
	Lamports   Lamports
	Owner      Pubkey
	RentEpoch  uint64
	Executable bool
	Known      Fields // which of the other fields the write shows
	// ReadOnly, in a block and without FieldData: as far as the source shows, the block only read the account. If the account is
	// held with the same lamports, none of its fields changed.
	ReadOnly bool

	// Token, with FieldToken: the token facts, nil for "no token account".
	// Without Details it is a token balance: state, delegate and close authority that
	// were known before of the same holding stay.
	Token *TokenAccount
	// TokenOwnerUnknown marks a token balance of the years that did not record the
	// wallet: it changes the amount of a holding already known, nothing else.
	TokenOwnerUnknown bool
	// Mint, with FieldMint: the mint facts, nil for "no mint".
	Mint *Mint
	// Data, with FieldData, which needs FieldOwner: the whole data. A write that sets the lamports but not the data makes the data
	// unknown, as the data may have changed, unless the write is ReadOnly.
	Data Data
}

// OnlyRead reports whether the write is ReadOnly and does not have the data itself.
func (w *AccountWrite) OnlyRead() bool { return w.ReadOnly && w.Known&FieldData == 0 }

// MintWrite sets facts of a mint apart from a write of its account.
type MintWrite struct {
	Pubkey Pubkey
	Mint   Mint
}

// Provenance says where the value of a field comes from: twice the slot, plus one for a block, none for
// base state. Base state overrides a field whose Provenance is not above its own; a block always overrides.
type Provenance uint64

// BaseProvenance returns the Provenance of base state at a slot.
func BaseProvenance(s Slot) Provenance { return Provenance(s) << 1 }

// BlockProvenance returns the Provenance of the block at a slot.
func BlockProvenance(s Slot) Provenance { return Provenance(s)<<1 | 1 }

// ByBlock reports whether the value comes from a block.
func (p Provenance) ByBlock() bool { return p&1 == 1 }

// Slot returns the slot of the block or base state.
func (p Provenance) Slot() Slot { return Slot(p >> 1) }

// Account is the state of an account after a write. An account with 0 lamports does
// not exist: it is a tombstone, and Since says where it was closed.
type Account struct {
	Pubkey     Pubkey
	Owner      Pubkey
	Lamports   Lamports
	RentEpoch  uint64
	Executable bool
	// Known are the fields that are known. FieldToken and FieldMint are no state by themselves: mint facts are stored
	// apart, and FieldMint without any says that the account is no mint.
	Known Fields
	Token *TokenAccount
	// Data is zero if FieldData is not known. It comes from the write that set the lamports and has their provenance, except where
	// the data was not known after a block and base state of the same slot set it.
	Data Data

	// Since says where the account was closed or, if it is live, where it was opened after a tombstone; it is
	// 0 if no closing is known. Base state from before Since changes nothing.
	Since Provenance
	// Provenance is that of the lamports, and of every known field where FieldProvenance is nil.
	Provenance      Provenance
	FieldProvenance *FieldProvenance
}

// FieldProvenance is the provenance of each field, in the order of their bits in Fields: owner, executable, rent epoch,
// token, mint. It is 0 for unknown fields. Data has none of its own.
type FieldProvenance [5]Provenance

// Write returns the write that makes an account equal to a. It has no mint facts.
func (a *Account) Write() AccountWrite {
	return AccountWrite{
		Pubkey: a.Pubkey, Lamports: a.Lamports, Owner: a.Owner, RentEpoch: a.RentEpoch,
		Executable: a.Executable, Known: a.Known &^ FieldMint, Token: a.Token, Data: a.Data,
	}
}

// IsAsWritten reports whether a is live and write w of provenance p alone determines it, except for Since and mint facts.
func (a *Account) IsAsWritten(w *AccountWrite, p Provenance) bool {
	return a.Exists() && a.Lamports == w.Lamports && a.Known == w.Known && a.Token == w.Token && a.Data == w.Data &&
		a.Provenance == p && a.FieldProvenance == nil
}

// AsWritten returns the account for which IsAsWritten is true, without mint facts, which updates do not have. The fields of w that
// are not known must be zero.
func (w *AccountWrite) AsWritten(p, since Provenance) Account {
	return Account{
		Pubkey: w.Pubkey, Owner: w.Owner, Lamports: w.Lamports, RentEpoch: w.RentEpoch, Executable: w.Executable,
		Known: w.Known &^ FieldMint, Token: w.Token, Data: w.Data, Provenance: p, Since: since,
	}
}

// ForgottenBelow reports whether a is a tombstone that a record with a horizon does not see, see Record.Horizon.
func (a *Account) ForgottenBelow(horizon Slot) bool { return !a.Exists() && a.Since.Slot() < horizon }

// Exists reports whether the account is live.
func (a *Account) Exists() bool { return a.Lamports != 0 }

// Program returns the program that is known to own a, nil if there is none or a is closed.
func (a *Account) Program() *Pubkey {
	if !a.Exists() || a.Known&FieldOwner == 0 {
		return nil
	}
	return &a.Owner
}

// Wallet returns the wallet that a belongs to if a is a live token account, else nil.
func (a *Account) Wallet() *Pubkey {
	if !a.Exists() || a.Token == nil {
		return nil
	}
	return &a.Token.Owner
}

// Unknown returns the shown fields whose value is not known.
func (a *Account) Unknown() Fields { return FieldsShown &^ a.Known }

// SameState reports whether two accounts have the same stored fields, token facts and data,
// whatever their provenance. Both may be tombstones.
func (a *Account) SameState(b *Account) bool {
	if a.Lamports != b.Lamports || a.Owner != b.Owner || a.RentEpoch != b.RentEpoch ||
		a.Executable != b.Executable || (a.Known^b.Known)&(FieldsShown|FieldData) != 0 || a.Data != b.Data {
		return false
	}
	if a.Token == nil || b.Token == nil {
		return a.Token == b.Token
	}
	return *a.Token == *b.Token
}

// SameToReaders reports whether a reader could not tell two accounts apart: nil and
// tombstones both stand for no account.
func SameToReaders(a, b *Account) bool {
	aLive, bLive := a != nil && a.Exists(), b != nil && b.Exists()
	if !aLive || !bLive {
		return aLive == bLive
	}
	return a.SameState(b)
}
