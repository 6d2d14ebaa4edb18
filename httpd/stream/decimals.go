package stream

import (
	"errors"
	"maps"
	"slices"

	"ledgerd/engine/ledger"
)

// mints are those of some accounts, with the decimals that the ledger knows once they were read.
type mints map[ledger.Pubkey]ledger.Opt[uint8]

// add enters the mint of an account, if it is a token account.
func (m mints) add(a *ledger.Account) {
	if t := tokenOf(a); t != nil {
		m[t.Mint] = ledger.Opt[uint8]{}
	}
}

// of returns the decimals of an account's mint. They are unknown where it is no token account, the ledger does
// not know the mint, or was not asked.
func (m *mints) of(a *ledger.Account) (unknown ledger.Opt[uint8]) {
	if t := tokenOf(a); m != nil && t != nil {
		return (*m)[t.Mint]
	}
	return unknown
}

// readMints reads the decimals of mints as of a head, all at once.
func (h *Hub) readMints(head *ledger.Head, m mints) error {
	if len(m) == 0 {
		return nil
	}
	keys := slices.Collect(maps.Keys(m))
	facts, _, err := h.config.Ledger.Mints(ledger.Query{Commitment: ledger.Processed, Head: head}, keys)
	if err != nil {
		if !errors.Is(err, ledger.ErrUnavailable) {
			h.config.Logger.Error("cannot read the decimals of mints for subscribers", "mints", len(m), "error", err)
		}
		return err
	}
	for i, key := range keys {
		if facts[i] != nil {
			m[key] = ledger.Some(facts[i].Decimals)
		}
	}
	return nil
}

// decimalsBatch is how many emissions one question to the ledger is about: it bounds the memory that a
// long backlog takes for its questions.
const decimalsBatch = 16

// readDecimals reads the decimals of emissions that lack them, as of a head, and returns how many mints the
// ledger was asked for. What cannot be read stays unknown until the next reader asks for it. The caller does not
// hold the hub's lock.
func (h *Hub) readDecimals(head *ledger.Head, emissions []*emission) (asked int) {
	for some := range slices.Chunk(emissions, decimalsBatch) {
		lacking := make(mints)
		for _, e := range some {
			for i := range e.updates {
				if e.decimals.Load() == nil {
					lacking.add(&e.updates[i].Account)
				}
			}
		}
		asked += len(lacking)
		if h.readMints(head, lacking) != nil {
			return asked
		}
		for _, e := range some {
			e.decimals.CompareAndSwap(nil, &lacking)
		}
	}
	return asked
}

// newest returns the newest head.
func (h *Hub) newest() *ledger.Head {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.head
}

// tokenOf returns the facts of a token account, nil if a live account is none.
func tokenOf(a *ledger.Account) *ledger.TokenAccount {
	if !a.Exists() {
		return nil
	}
	return a.Token
}
