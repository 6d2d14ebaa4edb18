package ledger

// TokenState is the state byte of an SPL token account.
type TokenState uint8

const (
	TokenUninitialized TokenState = iota
	TokenInitialized
	TokenFrozen
)

// TokenAccount is what the ledger knows of one holding of an SPL token. It is a fact
// about an account owned by one of the token programs and never changes in place.
type TokenAccount struct {
	Mint   Pubkey
	Owner  Pubkey // the wallet, not the owner program
	Amount uint64 // in the mint's smallest unit

	// Details holds what only the account's data shows. Token balances in
	// transaction metadata do not show it.
	Details Opt[TokenDetails]
}

// TokenDetails is the part of a token account that only its data shows.
type TokenDetails struct {
	State           TokenState
	Delegate        Opt[Pubkey]
	DelegatedAmount uint64
	CloseAuthority  Opt[Pubkey]
}

// IsNative reports whether the account holds wrapped lamports: it follows from the mint.
func (t *TokenAccount) IsNative() bool {
	return t.Mint == NativeMint || t.Mint == NativeMint2022
}

// Mint is what the ledger knows of one SPL mint. A token balance teaches decimals only.
type Mint struct {
	Decimals uint8
	Supply   Opt[uint64]
	// Scaled is true where the mint's amounts are shown scaled or with interest
	// (ScaledUiAmount, InterestBearingConfig), so that no plain ui_amount exists.
	Scaled Opt[bool]

	// Provenance says who taught the decimals, and with them that there is such a mint. Each fact obeys the rules of
	// base state by itself; who taught one that is not known is 0.
	Provenance, SupplyProvenance, ScaledProvenance Provenance
}

// Facts returns the facts without who taught them, as a write tells them.
func (m *Mint) Facts() Mint { return Mint{Decimals: m.Decimals, Supply: m.Supply, Scaled: m.Scaled} }

// SameFacts reports whether two mints are known to be the same, whoever taught it.
func (m *Mint) SameFacts(o *Mint) bool { return m.Facts() == o.Facts() }
