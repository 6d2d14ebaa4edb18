package sequencer

import (
	"errors"
	"log/slog"
	"testing"

	"ledgerd/engine/fill"
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
		final  ledger.Version // by which record the block of the snapshot is known to be final
	}{
		"the block's record": {ledger.Record{Kind: ledger.BlockRecord, Version: 7, StateHash: m.StateHash}, nil, notYet},
		"base state after the block was final": {
			ledger.Record{Kind: ledger.BaseRecord, Version: 7, StateHash: m.StateHash}, nil, 6,
		},
		"another state": {ledger.Record{Kind: ledger.BlockRecord, Version: 7, StateHash: ledger.StateHash{2}}, ledger.ErrCorrupt, notYet},
	}
	for name, tt := range tests {
		s := New(Config{Stored: txstore.New(), Filler: (*fill.Filler)(nil), Logger: slog.New(slog.DiscardHandler)})
		s.ResumeAt(m, nil, ledger.Opt[ledger.Slot]{})
		err := s.MatchSnapshot(&tt.record)
		if !errors.Is(err, tt.want) || s.Chain().Finalized.FinalizedBy != tt.final {
			t.Errorf("%s: %v, final by record %d; want %v, %d", name, err, s.Chain().Finalized.FinalizedBy, tt.want, tt.final)
		}
	}
}
