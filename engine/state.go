package engine

import (
	"iter"

	"ledgerd/engine/ledger"
	"ledgerd/shard"
)

// State returns every live account at the finalized tip of a head, in pubkey order, and after them the facts of every mint: each as
// base state of its own, which is valid until the next one. The head must be the newest. The walk sees a frozen copy, which does not
// change while the engine goes on, and takes memory until release is called.
func (e *Engine) State(h *ledger.Head) (all iter.Seq[*ledger.BaseState], release func(), err error) {
	at := h.Tip(ledger.Finalized)
	frozen, err := shard.FreezeAll(e.shards, at.Version)
	if err != nil {
		return nil, nil, err
	}
	all = func(yield func(*ledger.BaseState) bool) {
		walk(frozen, func(a *ledger.Account) bool {
			return yield(&ledger.BaseState{Slot: at.Slot, Accounts: []ledger.AccountWrite{a.Write()}})
		}, func(m *ledger.MintWrite) bool {
			return yield(&ledger.BaseState{Slot: at.Slot, Mints: []ledger.MintWrite{*m}})
		})
	}
	return all, func() { shard.ReleaseAll(frozen) }, nil
}

// visit is ledger.ResumePoint.Visit at a version. No newer version may be folded meanwhile.
func (e *Engine) visit(v ledger.Version, account func(*ledger.Account) bool, mint func(*ledger.MintWrite) bool) error {
	frozen, err := shard.FreezeAll(e.shards, v)
	if err == nil {
		walk(frozen, account, mint)
		shard.ReleaseAll(frozen)
	}
	return err
}

// walk does what visit does, with copies of the shards.
func walk(frozen []*shard.Frozen, account func(*ledger.Account) bool, mint func(*ledger.MintWrite) bool) {
	for _, f := range frozen {
		for a := range f.Accounts {
			if a.Exists() && !account(a) {
				return
			}
		}
	}
	for _, f := range frozen {
		for m := range f.Mints {
			if m.Mint = m.Mint.Facts(); !mint(&m) {
				return
			}
		}
	}
}
