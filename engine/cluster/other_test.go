package cluster

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"ledgerd/engine/cluster/natstest"
	"ledgerd/engine/ledger"
)

// lastChanged returns records of which the last one says something else and leads to the same state.
func lastChanged(records []*ledger.Record, change func(*ledger.Record)) []*ledger.Record {
	records = slices.Clone(records)
	last := *records[len(records)-1]
	change(&last)
	records[len(records)-1] = &last
	return records
}

// otherRecords are what a record may say instead without another state.
var otherRecords = map[string]func(*ledger.Record){
	"another block":  func(r *ledger.Record) { r.Hash[0]++ },
	"another slot":   func(r *ledger.Record) { r.Slot++ },
	"another kind":   func(r *ledger.Record) { r.Kind, r.Status = ledger.RollbackRecord, 0 },
	"another status": func(r *ledger.Record) { r.Status = ledger.StatusFinalized },
	"another seq":    func(r *ledger.Record) { r.FirstSeq++ },
}

// testOtherRecordIsNamed joins with a last record that is another one of the same version and the same state: at the end of a
// commit, in its middle, and at the end of the stream.
func testOtherRecordIsNamed(t *testing.T, s *natstest.Servers) {
	random := rand.New(rand.NewPCG(17, 0))
	w := follow(t, open(t, s.URLs(), Config{Stream: "others", NodeID: "w", MayWrite: true}), nil)
	w.writes()
	for range 3 {
		w.mustCommit(random, 2, 0)
	}
	for _, change := range otherRecords {
		for _, held := range []int{2, 3, 4, 6} {
			named(t, s, Config{Stream: "others", NodeID: "n"}, lastChanged(w.has()[:held], change), ErrOtherLedger)
		}
	}
	// What its own commit is not in the stream for is told by the state alone.
	if err := w.PurgeBelow(t.Context(), 3); err != nil {
		t.Fatal(err)
	}
	n := follow(t, open(t, s.URLs(), Config{Stream: "others", NodeID: "n"}), w.has()[:2])
	n.waitFor(6)
	other := lastChanged(w.has()[:2], func(r *ledger.Record) { r.StateHash[0]++ })
	named(t, s, Config{Stream: "others", NodeID: "n"}, other, ErrOtherLedger)
	named(t, s, Config{Stream: "others", NodeID: "n"}, w.has()[:1], ErrPurged)
	for v := range ledger.Version(7) {
		switch r, err := w.RecordAt(t.Context(), v+1); {
		case v < 2 && !errors.Is(err, ErrPurged), v == 6 && !errors.Is(err, ErrShortened):
			t.Errorf("record %d: %v", v+1, err)
		case v >= 2 && v < 6 && (err != nil || r.Digest() != w.has()[v].Digest()):
			t.Errorf("record %d: %v", v+1, err)
		}
	}
}
