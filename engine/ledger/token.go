package ledger

// TokenState is the state byte of an SPL token account.
type TokenState uint8

const (
	TokenUninitialized TokenState = iota
	TokenInitialized
	TokenFrozen
)

// TokenAccount is one holding of an SPL token: what is known of an account that one of the token
// programs owns. It never changes in place.
type TokenAccount struct {
	Mint   Pubkey
	Owner  Pubkey // the wallet, not the owner program
	Amount uint64 // in the mint's smallest unit

	// Details are known where a source shows the account's data. Token balances in
	// transaction metadata lack them.
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

// Mint is what is known of one SPL mint. A token balance has only the decimals.
type Mint struct {
	Decimals uint8
	Supply   Opt[uint64]
	// Scaled is true where the mint's amounts are shown scaled or with interest
	// (ScaledUiAmount, InterestBearingConfig), so that no plain ui_amount exists.
	Scaled Opt[bool]

	// Provenance is that of the decimals, and so of the fact that there is such a mint. Base state overrides each fact
	// by its own provenance, which is 0 for unknown facts.
	Provenance, SupplyProvenance, ScaledProvenance Provenance
}

// Facts returns the facts without their provenance, as a write has them.
func (m *Mint) Facts() Mint { return Mint{Decimals: m.Decimals, Supply: m.Supply, Scaled: m.Scaled} }
