package sequencer

import (
	"errors"
	"log/slog"
	"strings"
	"testing"

	"ledgerd/engine/chain"
	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/ledgertest"
	"ledgerd/shard/txstore"
)

// bare returns a sequencer without shards, so no record has updates or a state hash.
func bare(info ledger.SourceInfo) *Sequencer {
	retention := Retention{Slots: 9000, Bytes: 1 << 30}
	return New(Config{Stored: txstore.New(), Retention: retention, Info: info, Logger: slog.New(slog.DiscardHandler)})
}

// TestBaseStateThatWaitsIsBoundedByItsBytes has a node that is ahead tell accounts of which each is as large as one can be.
func TestBaseStateThatWaitsIsBoundedByItsBytes(t *testing.T) {
	s := bare(ledger.SourceInfo{})
	s.data, _ = ledger.ParseDataPrograms("all")
	ledgertest.Must(t, s.Handle(&ledger.Block{Slot: 1, Blockhash: ledger.Hash{1}}))
	for n := range 20 {
		w := ledger.AccountWrite{Pubkey: ledgertest.Key(n), Lamports: 1, Known: ledger.FieldOwner}
		w.SetData(make([]byte, ledger.MaxDataBytes), s.data)
		ledgertest.Must(t, s.Handle(&ledger.BaseState{Slot: 5, After: 5, Accounts: []ledger.AccountWrite{w}}))
	}
	held := 0
	for _, b := range s.ahead.states {
		held += b.SizeBytes()
	}
	if held > chain.MaxWaitingBytes || held < chain.MaxWaitingBytes/2 {
		t.Errorf("%d bytes wait, want up to %d", held, chain.MaxWaitingBytes)
	}
}

// TestRecordsThatDoNotFitAreRefused replays logs whose last record cannot be what the node wrote after the others.
func TestRecordsThatDoNotFitAreRefused(t *testing.T) {
	root := &ledger.Block{Slot: 1, Blockhash: ledger.Hash{1}}
	a := &ledger.Block{Slot: 2, ParentSlot: 1, Blockhash: ledger.Hash{2}}
	b := &ledger.Block{Slot: 3, ParentSlot: 2, Blockhash: ledger.Hash{3}}
	late := &ledger.Block{Slot: 2, ParentSlot: 1, Blockhash: ledger.Hash{4}}
	block := func(b *ledger.Block) ledger.Record {
		return ledger.Record{Kind: ledger.BlockRecord, Slot: b.Slot, Hash: b.Blockhash, Block: b}
	}
	rollback := func(to *ledger.Block) ledger.Record {
		return ledger.Record{Kind: ledger.RollbackRecord, Slot: to.Slot, Hash: to.Blockhash}
	}
	status := func(of *ledger.Block, s ledger.Status) ledger.Record {
		return ledger.Record{Kind: ledger.StatusRecord, Slot: of.Slot, Hash: of.Blockhash, Status: s}
	}
	with := func(r ledger.Record, change func(*ledger.Record)) ledger.Record {
		change(&r)
		return r
	}
	chain := []ledger.Record{block(root), block(a), block(b)}
	undone := append(chain[:3:3], rollback(root))
	for name, tt := range map[string]struct {
		before []ledger.Record
		last   ledger.Record
		want   string
	}{
		"a version is missing":            {chain, with(rollback(a), func(r *ledger.Record) { r.Version = 9 }), "record 4 is next"},
		"a rollback to the tip":           {chain, rollback(b), "not below the tip"},
		"a rollback to an unknown block":  {chain, rollback(late), "not below the tip"},
		"a block below the tip":           {chain, block(late), "does not go on from slot 3"},
		"a block whose parent was undone": {undone, block(b), "not beside the chain on the tip"},
		"a status before the first block": {nil, status(root, ledger.StatusFinalized), "before the first block"},
		"a block of the chain is dead":    {chain, status(a, ledger.StatusDead), "dead that is on the chain"},
		"an undone block is confirmed":    {undone, status(a, ledger.StatusConfirmed), "not on the chain"},
		"another slot than its block's":   {chain[:2], with(block(b), func(r *ledger.Record) { r.Slot = 4 }), "it leads to slot 3"},
		"another seq":                     {chain[:2], with(block(b), func(r *ledger.Record) { r.FirstSeq = 2 }), "the log says 2 to 1"},
		"updates":                         {chain[:2], with(block(b), func(r *ledger.Record) { r.Updates = make([]ledger.Update, 1) }), "the log says 1 to 1"},
		"another state hash":              {chain[:2], with(block(b), func(r *ledger.Record) { r.StateHash[0] = 1 }), "it leads to state hash"},
	} {
		s := bare(ledger.SourceInfo{})
		for i, r := range append(tt.before[:len(tt.before):len(tt.before)], tt.last) {
			if r.Version == 0 {
				r.Version = ledger.Version(i + 1)
			}
			if r.FirstSeq == 0 {
				r.FirstSeq = 1
			}
			err := s.Replay([]*ledger.Record{&r})
			if i < len(tt.before) && err != nil {
				t.Fatalf("%s: record %d: %v", name, r.Version, err)
			}
			if i == len(tt.before) && (!errors.Is(err, ledger.ErrCorrupt) || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("%s: %v, want %q", name, err, tt.want)
			}
		}
	}
}

// TestOlderProgramsToldNoHorizon goes on from records and from a snapshot that tell no horizon: closings expire by this node's own setting. What
// newer programs told is kept.
func TestOlderProgramsToldNoHorizon(t *testing.T) {
	root := &ledger.Block{Slot: 10_000, Blockhash: ledger.Hash{1}}
	a := &ledger.Block{Slot: 10_001, ParentSlot: 10_000, Blockhash: ledger.Hash{2}}
	records := []*ledger.Record{
		{Kind: ledger.BlockRecord, Version: 1, FirstSeq: 1, Slot: root.Slot, Hash: root.Blockhash, Block: root},
		{Kind: ledger.BlockRecord, Version: 2, FirstSeq: 1, Slot: a.Slot, Hash: a.Blockhash, Block: a},
		{Kind: ledger.StatusRecord, Version: 3, FirstSeq: 1, Slot: a.Slot, Hash: a.Blockhash, Status: ledger.StatusFinalized},
	}
	s := bare(ledger.SourceInfo{})
	for _, r := range records {
		if err := s.Replay([]*ledger.Record{r}); err != nil {
			t.Fatal(err)
		}
	}
	if got := s.Head().Horizon; got != 1001 {
		t.Errorf("after records without one the horizon is %d, want 1001", got)
	}
	b, err := s.Seal()
	if err != nil {
		t.Fatal(err)
	}
	s.Shown(b)
	m, _ := s.Snapshot()
	for told, want := range map[ledger.Slot]ledger.Slot{0: 1001, 500: 500} {
		again := bare(ledger.SourceInfo{})
		m.Horizon = told
		again.ResumeAt(&m, ledger.StatusRecord, nil, ledger.Opt[ledger.Slot]{})
		if got := again.Head().Horizon; got != want {
			t.Errorf("after a snapshot whose horizon is %d it is %d, want %d", told, got, want)
		}
	}
}
