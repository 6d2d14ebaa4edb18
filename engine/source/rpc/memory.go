package rpc

import "ledgerd/engine/ledger"

// standing is what is remembered of an account.
type standing uint8

const (
	unknown standing = iota
	plain            // all that is kept of it is known, and blocks show what changes of it
	token            // likewise, but it is a token account or a mint: blocks do not show all
)

// memory remembers a bounded number of accounts, about those that were used last.
type memory struct {
	limit      int
	young, old map[ledger.Pubkey]standing // an account in both stands as in young
}

func newMemory(limit int) *memory {
	return &memory{limit: max(limit/2, 1), young: make(map[ledger.Pubkey]standing)}
}

// get returns what is remembered of an account.
func (m *memory) get(key ledger.Pubkey) standing {
	if s, ok := m.young[key]; ok {
		return s
	}
	s, ok := m.old[key]
	if !ok {
		return unknown
	}
	m.put(key, s)
	return s
}

func (m *memory) put(key ledger.Pubkey, s standing) {
	if _, ok := m.young[key]; !ok && len(m.young) >= m.limit {
		m.old, m.young = m.young, make(map[ledger.Pubkey]standing)
	}
	m.young[key] = s
}

// forget forgets an account.
func (m *memory) forget(key ledger.Pubkey) {
	delete(m.young, key)
	delete(m.old, key)
}
