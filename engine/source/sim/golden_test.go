package sim

import (
	"testing"
)

// The pins hold on every machine, and a change of them is a change of every ledger that
// somebody keeps. They do not depend on the codec: the hash of the last block covers the chain
// of blocks, the state hashes every account.
func TestGoldenLedgerOfSeed1(t *testing.T) {
	const (
		wantEvents = 528
		wantBase   = "77f03f5a2c156256a523e948c66f77c6c2fb0f84256e949cc2c17d06c943c4c1"
		wantHash   = "GnDJFnfrMfTidFfs6bATkCSxKcBRuqtQ2tke9UrAd1NC"
		wantState  = "ba026a5fea3915c18abd391963db2c15be583dbbfcd29e591456e7f49e993fc2"
	)
	events := run(t, "slots=200,slot_time=0", nil)
	if len(events) != wantEvents {
		t.Errorf("%d events, want %d", len(events), wantEvents)
	}
	all := books(t, events)
	if got := all[0].stateHash().String(); got != wantBase {
		t.Errorf("state hash of genesis %s, want %s", got, wantBase)
	}
	state := all[len(all)-1]
	last := state.block
	if last.Height.Value == uint64(len(all)-1) {
		t.Errorf("no branch in %d blocks: the pins guard less than they should", last.Height.Value)
	}
	if got := last.Blockhash.String(); got != wantHash {
		t.Errorf("blockhash at slot %d is %s, want %s", last.Slot, got, wantHash)
	}
	if got := state.stateHash().String(); got != wantState {
		t.Errorf("state hash at slot %d is %s, want %s", last.Slot, got, wantState)
	}
}
