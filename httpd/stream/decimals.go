package stream

import (
	"errors"
	"maps"
	"slices"
	"sync/atomic"

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
// not know the mint, or could not be asked.
func (m mints) of(a *ledger.Account) (unknown ledger.Opt[uint8]) {
	if t := tokenOf(a); t != nil {
		return m[t.Mint]
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

// decimals are the mints of some updates. All emissions of the same updates share them. They are read from the
// ledger when a subscriber first wants them, and then kept.
type decimals struct {
	known atomic.Pointer[mints] // nil until they were read; perhaps with mints of other updates
}

// of returns the decimals of an account's mint.
func (d *decimals) of(a *ledger.Account) (unknown ledger.Opt[uint8]) {
	if known := d.known.Load(); known != nil {
		return known.of(a)
	}
	return unknown
}

// decimalsBatch is about how many updates one question to the ledger is about: it bounds the memory that a
// long backlog takes for its questions.
const decimalsBatch = 10_000

// readDecimals reads the decimals of emissions that lack them, as of a head, and returns how many mints the
// ledger was asked for. What cannot be read stays unknown until the next reader asks for it. The caller does not
// hold the hub's lock.
func (h *Hub) readDecimals(head *ledger.Head, emissions []*emission) (asked int) {
	for len(emissions) > 0 {
		var lacking []*emission
		wanted, updates := make(mints), 0
		for ; len(emissions) > 0 && updates < decimalsBatch; emissions = emissions[1:] {
			e := emissions[0]
			if e.decimals.known.Load() != nil {
				continue
			}
			lacking = append(lacking, e)
			updates += len(e.updates)
			for i := range e.updates {
				wanted.add(&e.updates[i].Account)
			}
		}
		asked += len(wanted)
		if h.readMints(head, wanted) != nil {
			return asked
		}
		for _, e := range lacking {
			e.decimals.known.Store(&wanted)
		}
	}
	return asked
}

// newestDecimals is readDecimals as of the newest head.
func (h *Hub) newestDecimals(emissions []*emission) (asked int) {
	h.mu.Lock()
	head := h.head
	h.mu.Unlock()
	return h.readDecimals(head, emissions)
}

// tokenOf returns the facts of a token account, nil if a live account is none.
func tokenOf(a *ledger.Account) *ledger.TokenAccount {
	if !a.Exists() {
		return nil
	}
	return a.Token
}
