package stream

import (
	"errors"
	"sync/atomic"

	"ledgerd/engine/ledger"
)

// decimals are those of the mints of some updates, in the order of the updates. All emissions of the same
// updates share them. They are read from the ledger when a subscriber first wants them, and then kept.
type decimals struct {
	known atomic.Pointer[[]ledger.Opt[uint8]] // nil until they were read
}

// of returns the decimals of an update's mint. They are unknown where the update is of no token account, the
// ledger does not know the mint, or the ledger could not be asked.
func (d *decimals) of(update int) (unknown ledger.Opt[uint8]) {
	if known := d.known.Load(); known != nil {
		return (*known)[update]
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
		var some []*emission
		var q mintQuestion
		for ; len(emissions) > 0 && len(q.places) < decimalsBatch; emissions = emissions[1:] {
			e := emissions[0]
			if e.decimals.known.Load() != nil {
				continue
			}
			some = append(some, e)
			for i := range e.updates {
				q.add(&e.updates[i].Account)
			}
		}
		all, err := q.ask(h, head)
		if asked += len(q.mints); err != nil {
			return asked
		}
		for _, e := range some {
			mine := all[:len(e.updates):len(e.updates)]
			all = all[len(e.updates):]
			e.decimals.known.Store(&mine)
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

// mintQuestion asks for the decimals of many accounts' mints at once, each mint once.
type mintQuestion struct {
	mints  []ledger.Pubkey
	index  map[ledger.Pubkey]int32 // in mints
	places []int32                 // of each account's mint in mints; noMint: it is no token account
}

const noMint = -1

func (q *mintQuestion) add(a *ledger.Account) {
	t := tokenOf(a)
	if t == nil {
		q.places = append(q.places, noMint)
		return
	}
	place, known := q.index[t.Mint]
	if !known {
		if q.index == nil {
			q.index = make(map[ledger.Pubkey]int32)
		}
		place = int32(len(q.mints))
		q.index[t.Mint] = place
		q.mints = append(q.mints, t.Mint)
	}
	q.places = append(q.places, place)
}

// ask returns the decimals of each account's mint as of a head, in the order of the accounts.
func (q *mintQuestion) ask(h *Hub, head *ledger.Head) ([]ledger.Opt[uint8], error) {
	out := make([]ledger.Opt[uint8], len(q.places))
	if len(q.mints) == 0 {
		return out, nil
	}
	facts, _, err := h.config.Ledger.Mints(ledger.Query{Commitment: ledger.Processed, Head: head}, q.mints)
	if err != nil {
		if !errors.Is(err, ledger.ErrUnavailable) {
			h.config.Logger.Error("cannot read the decimals of mints for subscribers", "mints", len(q.mints), "error", err)
		}
		return out, err
	}
	for i, place := range q.places {
		if place != noMint && facts[place] != nil {
			out[i] = ledger.Some(facts[place].Decimals)
		}
	}
	return out, nil
}

// tokenOf returns the facts of a token account, nil if a live account is none.
func tokenOf(a *ledger.Account) *ledger.TokenAccount {
	if !a.Exists() {
		return nil
	}
	return a.Token
}
