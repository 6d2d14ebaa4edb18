package ledger

import "testing"

// TestDigestTellsRecordsApart changes the fields that are the same on all nodes, one at a time.
func TestDigestTellsRecordsApart(t *testing.T) {
	seen := map[RecordDigest]string{}
	for what, change := range map[string]func(*Record){
		"none":       func(*Record) {},
		"version":    func(r *Record) { r.Version++ },
		"kind":       func(r *Record) { r.Kind = RollbackRecord },
		"slot":       func(r *Record) { r.Slot++ },
		"hash":       func(r *Record) { r.Hash[31]++ },
		"status":     func(r *Record) { r.Status = StatusFinalized },
		"from slot":  func(r *Record) { r.FromSlot++ },
		"first seq":  func(r *Record) { r.FirstSeq++ },
		"updates":    func(r *Record) { r.Updates = make([]Update, 3) },
		"state hash": func(r *Record) { r.StateHash[3]++ },
	} {
		r := Record{Version: 7, Kind: StatusRecord, Slot: 9, Status: StatusConfirmed, FirstSeq: 4, Updates: make([]Update, 2)}
		change(&r)
		if other, taken := seen[r.Digest()]; taken {
			t.Errorf("%s and %s: one digest", what, other)
		}
		seen[r.Digest()] = what
	}
	a := Record{Version: 7, Updates: make([]Update, 1)}
	b := Record{Version: 7, Updates: make([]Update, 1)}
	b.Updates[0].Account.Provenance = BlockProvenance(5)
	if a.Digest() != b.Digest() {
		t.Error("the provenance of an account changes the digest")
	}
}
