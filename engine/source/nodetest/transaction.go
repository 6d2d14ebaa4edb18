package nodetest

import (
	"ledgerd/engine/ledger"
)

// split says how the accounts of a made transaction are spread: static keys in the message, then those
// loaded from a lookup table. Every third transaction of four accounts or more is of version 0 and loads
// its last two, one writable and one readonly.
func split(tx *ledger.Transaction) (static, writable, readonly []ledger.Pubkey, versioned bool) {
	n := len(tx.Accounts)
	if n < 4 || tx.Index%3 != 2 {
		return tx.Accounts, nil, nil, false
	}
	return tx.Accounts[:n-2], tx.Accounts[n-2 : n-1], tx.Accounts[n-1:], true
}
