package feed

import "ledgerd/engine/ledger"

// transactionAccounts is how many accounts a transaction names.
const transactionAccounts = 12

// addTransactions adds those of a block. They name the accounts in turns, and each block goes on
// where the one before ended.
func (c Config) addTransactions(b *ledger.Block) {
	perBlock := uint64(c.Transactions * transactionAccounts)
	first := int(uint64(b.Slot-FirstSlot) % uint64(c.Accounts) * perBlock % uint64(c.Accounts))
	for i := range c.Transactions {
		t := ledger.Transaction{
			Fee: ledger.Some(ledger.Lamports(5000)), Success: ledger.Some(true),
			Accounts: make([]ledger.Pubkey, transactionAccounts),
		}
		fill(t.Signature[:], (uint64(b.Slot)<<20|uint64(i))<<8|'t')
		for k := range t.Accounts {
			t.Accounts[k] = Key((first + i*transactionAccounts + k) % c.Accounts)
		}
		b.AddTransaction(t)
	}
	b.TransactionCount = uint64(c.Transactions)
}
