package sequencer

import (
	"errors"
	"log/slog"
	"testing"

	"ledgerd/engine/ledger"
	"ledgerd/shard/txstore"
	"ledgerd/snapshot"
)

// TestLogOfAnotherLedgerDoesNotMatchASnapshot compares a snapshot with records that the log holds in its place.
func TestLogOfAnotherLedgerDoesNotMatchASnapshot(t *testing.T) {
	m := &snapshot.Meta{Version: 7, StateHash: ledger.StateHash{1}, Block: &ledger.Block{Slot: 100}}
	tests := map[string]struct {
		record ledger.Record
		want   error
		known  bool // that the block of the snapshot is final
	}{
		"the block's record": {ledger.Record{Kind: ledger.BlockRecord, Version: 7, StateHash: m.StateHash}, nil, false},
		"base state after the block was final": {
			ledger.Record{Kind: ledger.BaseRecord, Version: 7, StateHash: m.StateHash}, nil, true,
		},
		"another state": {ledger.Record{Kind: ledger.BlockRecord, Version: 7, StateHash: ledger.StateHash{2}}, ledger.ErrCorrupt, false},
	}
	for name, tt := range tests {
		s := New(Config{Stored: txstore.New(), Logger: slog.New(slog.DiscardHandler)})
		s.ResumeAt(m, nil, ledger.Opt[ledger.Slot]{})
		err := s.MatchSnapshot(&tt.record)
		if !errors.Is(err, tt.want) || s.Chain().Finalized.Provisional == tt.known {
			t.Errorf("%s: %v, provisional %v; want %v, known to be final %v", name, err, s.Chain().Finalized.Provisional, tt.want, tt.known)
		}
	}
}
