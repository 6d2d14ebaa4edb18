package feed

import "ledgerd/engine/ledger"

// mints are how many there are; token accounts are of them in turns.
const mints = 1000

const (
	// walletTokens is how many token accounts with indexes in a row belong to one wallet.
	walletTokens = 4
	// walletStride makes wallets of accounts from anywhere in the ledger.
	walletStride = 7919
)

// ChangedBytes are those, from the middle on, that each update changes of the data of an account: as many as a swap changes of a pool, two reserves
// and two sums.
const ChangedBytes = 32

// Mint returns the mint of the tokens that the account of an index holds.
func Mint(index int) (k ledger.Pubkey) {
	fill(k[:], uint64(index%mints)<<8|'m')
	return k
}

// Wallet returns whom the tokens belong to that the account of an index holds.
func (c Config) Wallet(index int) ledger.Pubkey {
	return Key(int(uint64(index/walletTokens) * walletStride % uint64(c.Accounts)))
}

// Account returns the account of an index as a slot left it. A token account holds as many
// tokens as lamports.
func (c Config) Account(index int, s ledger.Slot) ledger.AccountWrite {
	a := ledger.AccountWrite{
		Pubkey: Key(index), Lamports: ledger.Lamports(s), Owner: Program(index), RentEpoch: ^uint64(0), Known: ledger.FieldsAll,
	}
	if index%100 < c.Tokens {
		a.Owner = ledger.TokenProgram
		a.Token = &ledger.TokenAccount{
			Mint: Mint(index), Owner: c.Wallet(index), Amount: uint64(s),
			Details: ledger.Some(ledger.TokenDetails{State: ledger.TokenInitialized}),
		}
	}
	if c.Data > 0 {
		data := make([]byte, c.Data)
		fill(data, uint64(index)<<32)
		changed := data[c.Data/16*8:]
		fill(changed[:min(len(changed), ChangedBytes)], uint64(index)<<32|uint64(s))
		a.Known, a.Data = a.Known|ledger.FieldData, ledger.NewData(data)
	}
	return a
}
