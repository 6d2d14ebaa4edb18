package sim

import (
	"cmp"
	"fmt"

	"ledgerd/engine/ledger"
)

// restore gives every account its state at the point to resume from. An account this ledger
// cannot have, or a wallet that is missing, means that the state is another ledger's.
func (w *world) restore(from *ledger.ResumePoint) error {
	positions := make(map[ledger.Pubkey]ref, len(w.keys))
	for r, k := range w.keys {
		positions[k] = ref(r)
	}
	var stranger error
	err := from.Visit(func(a *ledger.Account) bool {
		stranger = w.restoreAccount(positions, a)
		return stranger == nil
	}, func(m *ledger.MintWrite) bool {
		// Facts of a mint may outlive its account.
		if r, ok := positions[m.Pubkey]; ok && w.isMint(r) && w.cells[r].open() {
			w.cells[r].amount = m.Mint.Supply.Value
		}
		return true
	})
	if err := cmp.Or(err, stranger); err != nil {
		return err
	}
	return w.check()
}

// restoreAccount gives one account its state.
func (w *world) restoreAccount(positions map[ledger.Pubkey]ref, a *ledger.Account) error {
	r, ok := positions[a.Pubkey]
	if !ok {
		return fmt.Errorf("the state holds an account that this ledger cannot have: %s", a.Pubkey)
	}
	c := &w.cells[r]
	c.lamports = uint64(a.Lamports)
	if !w.isHolding(r) {
		return nil
	}
	if a.Token == nil || !a.Token.Details.Known {
		return fmt.Errorf("the token facts of %s are not held", a.Pubkey)
	}
	details := &a.Token.Details.Value
	c.amount, c.delegated = a.Token.Amount, details.DelegatedAmount
	c.frozen = details.State == ledger.TokenFrozen
	if details.Delegate.Known {
		if c.delegate, ok = positions[details.Delegate.Value]; !ok {
			return fmt.Errorf("the delegate of %s is not a wallet of this ledger", a.Pubkey)
		}
	}
	return nil
}

// check reports a state that no run can have reached.
func (w *world) check() error {
	genesis := world{layout: w.layout, cells: make([]cell, len(w.cells))}
	genesis.fill()
	var had, has uint64
	for r := range w.cells {
		had, has = had+genesis.cells[r].lamports, has+w.cells[r].lamports
		if w.isWallet(ref(r)) && !w.cells[r].open() {
			return fmt.Errorf("the state lacks the wallet %s", w.keys[r])
		}
	}
	if had != has {
		return fmt.Errorf("the state holds %d lamports in all and this ledger %d", has, had)
	}
	return nil
}
