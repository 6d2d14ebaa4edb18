package shard

import (
	"errors"
	"sync"
	"testing"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/ledgertest"
)

// TestRestoreRefusesContentThatFails gives a shard content, some of which fails at the end, and checks that nothing of that
// stays. Counters are read meanwhile.
func TestRestoreRefusesContentThatFails(t *testing.T) {
	const keys = 4
	broken := errors.New("broken")
	for name, tt := range map[string]struct{ accounts, mints error }{
		"good":          {nil, nil},
		"accounts fail": {broken, nil},
		"mints fail":    {nil, broken},
	} {
		s := New(0, 1)
		c := content(many(keys))
		c.Version = 7
		accounts := c.Accounts
		c.Accounts = func(visit func(*ledger.Account) bool) error { return errors.Join(accounts(visit), tt.accounts) }
		c.Mints = func(visit func(ledger.MintWrite) bool) error { visit(ledger.MintWrite{}); return tt.mints }
		var metrics sync.WaitGroup
		metrics.Go(func() { s.Counters().Accounts.Load() }) // the race detector is the judge
		err := s.Restore(c)
		metrics.Wait()
		want := [4]int64{keys, keys / 2, keys, 7}
		if tt.accounts != nil || tt.mints != nil {
			ledgertest.ErrorIs(t, err, broken, "%s: Restore", name)
			want = [4]int64{}
		} else {
			must(t, err)
		}
		held := [4]int64{s.Counters().Accounts.Load(), s.Counters().TokenAccounts.Load(), int64(s.state.accounts.base.Len()), int64(s.state.folded)}
		ledgertest.Equal(t, held, want, "%s: accounts and token accounts counted, accounts held, version folded", name)
	}
}
