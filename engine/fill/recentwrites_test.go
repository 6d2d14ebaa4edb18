package fill

import (
	"testing"

	"ledgerd/engine/ledger"
)

func TestTouchedKeysAreBoundedAndSayHowFarTheyReach(t *testing.T) {
	var ring recentWrites
	gone := func(slot ledger.Slot) ledger.Pubkey { return key(2 * int(slot)) }
	kept := func(slot ledger.Slot) ledger.Pubkey { return key(2*int(slot) + 1) }
	const root, last = 100, ledger.Slot(100 + 3*maxRecentBlocks)
	for slot := ledger.Slot(root); slot <= last; slot++ {
		ring.add(&ledger.Block{Slot: slot, Accounts: []ledger.AccountWrite{{Pubkey: gone(slot)}, {Pubkey: kept(slot), Lamports: 1}, {Pubkey: key(-1)}, {Pubkey: key(-1), Lamports: 1}}})
		if slot == root && ring.horizon != root {
			t.Errorf("with the root known, the horizon is %d", ring.horizon)
		}
	}
	if len(ring.blocks) != maxRecentBlocks || ring.keys != 3*maxRecentBlocks || ring.horizon != last-maxRecentBlocks {
		t.Errorf("%d blocks, %d keys, from slot %d", len(ring.blocks), ring.keys, ring.horizon)
	}
	tests := map[string]struct {
		after  ledger.Slot
		key    ledger.Pubkey
		alive  bool
		closed ledger.Slot
	}{
		"closed":              {last - 1, gone(last), false, last},
		"left alive":          {last - 1, kept(last), true, 0},
		"written at the slot": {last, kept(last), false, 0},
		"at the horizon":      {ring.horizon, gone(ring.horizon), false, 0},
		"after the horizon":   {ring.horizon, gone(ring.horizon + 1), false, ring.horizon + 1},
		"both in one block":   {last - 5, key(-1), true, last},
		"not written":         {ring.horizon, key(0), false, 0},
	}
	for name, tt := range tests {
		if alive, closed := ring.after(tt.after, tt.key); alive != tt.alive || closed != tt.closed {
			t.Errorf("%s: alive %v, closed at %d, want %v, %d", name, alive, closed, tt.alive, tt.closed)
		}
	}
	ring.rollBack(last - 1)
	if _, closed := ring.after(last-2, gone(last)); closed != 0 || ring.keys != 3*(maxRecentBlocks-1) {
		t.Errorf("closed at %d by a block that was undone; %d keys", closed, ring.keys)
	}
	large := &ledger.Block{Slot: last}
	for n := range maxRecentKeys + 1 {
		large.Accounts = append(large.Accounts, ledger.AccountWrite{Pubkey: key(n)})
	}
	ring.add(large)
	if ring.keys != 0 || ring.horizon != last {
		t.Errorf("a block that wrote too much is said to be known: %d keys, from slot %d", ring.keys, ring.horizon)
	}
}
