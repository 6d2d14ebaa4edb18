package fill

import (
	"testing"

	"ledgerd/engine/ledger"
)

// TestAnswerGivesWayToNewerBlocks holds an answer of slot 100 against what later blocks did to its account.
func TestAnswerGivesWayToNewerBlocks(t *testing.T) {
	closes, opens := ledger.AccountWrite{Pubkey: key(1)}, ledger.AccountWrite{Pubkey: key(1), Lamports: 2}
	tests := map[string]struct {
		partial bool
		writes  []ledger.AccountWrite // one a block
		learned bool
		absent  ledger.Slot
	}{
		"not written":              {false, nil, true, 0},
		"in part, not written":     {true, nil, true, 0},
		"written":                  {false, []ledger.AccountWrite{opens}, false, 0}, // the state tells
		"in part, written":         {true, []ledger.AccountWrite{opens}, true, 0},
		"closed":                   {false, []ledger.AccountWrite{closes, closes}, false, 102},
		"opened again":             {false, []ledger.AccountWrite{closes, opens}, false, 0},
		"in part, of another life": {true, []ledger.AccountWrite{closes, opens}, false, 0},
	}
	for name, tt := range tests {
		f := New(Config{})
		f.Begin(100)
		if _, err := f.await(key(1), tt.partial, 0); err != nil {
			t.Fatal(err)
		}
		for i, w := range tt.writes {
			f.Appended(&ledger.Block{Slot: ledger.Slot(101 + i), Accounts: []ledger.AccountWrite{w}})
		}
		said := &ledger.BaseState{Slot: 100, Accounts: []ledger.AccountWrite{{Pubkey: key(1), Lamports: 9}}}
		base := f.Learn(&Answer{keys: []ledger.Pubkey{key(1)}, base: said, done: make(chan struct{})})
		if absent, _ := f.remembered(key(1)); (base != nil) != tt.learned || absent.since != tt.absent {
			t.Errorf("%s: learned %v, absent since %d, want %v, %d", name, base != nil, absent.since, tt.learned, tt.absent)
		}
	}
}
