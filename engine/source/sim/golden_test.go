package sim

import (
	"testing"

	"ledgerd/engine/ledger"
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
	state := newBook()
	blocks := make(map[ledger.Hash]*ledger.Block)
	var last *ledger.Block
	for _, e := range events {
		switch e := e.(type) {
		case *ledger.BaseState:
			state.apply(e.Accounts, ledger.BaseProvenance(e.Slot))
		case *ledger.Block:
			last, blocks[e.Blockhash] = e, e
		}
	}
	if len(events) != wantEvents {
		t.Errorf("%d events, want %d", len(events), wantEvents)
	}
	if got := state.stateHash().String(); got != wantBase {
		t.Errorf("state hash of genesis %s, want %s", got, wantBase)
	}
	var chain []*ledger.Block // newest first
	for b := last; b != nil; b = blocks[b.PreviousBlockhash.Value] {
		chain = append(chain, b)
	}
	for i := len(chain) - 1; i >= 0; i-- {
		state.apply(chain[i].Accounts, ledger.BlockProvenance(chain[i].Slot))
	}
	if len(chain) == len(blocks) {
		t.Errorf("no branch in %d blocks: the pins guard less than they should", len(chain))
	}
	if got := last.Blockhash.String(); got != wantHash {
		t.Errorf("blockhash at slot %d is %s, want %s", last.Slot, got, wantHash)
	}
	if got := state.stateHash().String(); got != wantState {
		t.Errorf("state hash at slot %d is %s, want %s", last.Slot, got, wantState)
	}
}
