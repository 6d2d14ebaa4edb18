package rpc

import "ledgerd/engine/ledger"

// knowledge is what is known of an account.
type knowledge uint8

const (
	unknown knowledge = iota
	plain             // all that is kept of it is known, and blocks show what changes of it
	token             // likewise, but it is a token account or a mint: blocks do not show all
)

// recentAccounts remembers a bounded number of accounts, about those that were used last.
type recentAccounts struct {
	limit      int
	young, old map[ledger.Pubkey]knowledge // an account in both stands as in young
}

func newRecentAccounts(limit int) *recentAccounts {
	return &recentAccounts{limit: max(limit/2, 1), young: make(map[ledger.Pubkey]knowledge)}
}

// get returns what is remembered of an account.
func (m *recentAccounts) get(key ledger.Pubkey) knowledge {
	s, isYoung := m.young[key]
	if !isYoung {
		if s = m.old[key]; s != unknown {
			m.put(key, s)
		}
	}
	return s
}

func (m *recentAccounts) put(key ledger.Pubkey, s knowledge) {
	if _, ok := m.young[key]; !ok && len(m.young) >= m.limit {
		m.old, m.young = m.young, make(map[ledger.Pubkey]knowledge)
	}
	m.young[key] = s
}

// forget forgets an account.
func (m *recentAccounts) forget(key ledger.Pubkey) {
	delete(m.young, key)
	delete(m.old, key)
}
