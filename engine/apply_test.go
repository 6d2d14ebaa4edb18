package engine

import (
	"testing"

	"ledgerd/engine/ledger"
	"ledgerd/shard"
)

// TestUpdatesOfShardsAreJoined brings together what shards put into one room, with gaps and without,
// and what they have each for itself.
func TestUpdatesOfShardsAreJoined(t *testing.T) {
	type part struct{ at, n, room int } // where in the room, how many updates, for how many there is room
	tests := map[string]struct {
		room  int
		parts []part
		same  bool // the updates stay where they are
	}{
		"no block":               {0, nil, false},
		"nothing changes":        {5, []part{{0, 0, 3}, {3, 0, 2}}, false},
		"everything changes":     {5, []part{{0, 3, 3}, {3, 2, 2}}, true},
		"all in the last shard":  {4, []part{{0, 0, 0}, {0, 4, 4}}, true},
		"all in the first shard": {4, []part{{0, 4, 4}, {4, 0, 0}}, true},
		"a gap":                  {6, []part{{0, 1, 3}, {3, 3, 3}}, false},
		"a gap at the front":     {6, []part{{0, 0, 3}, {3, 3, 3}}, false},
		"a gap at the end":       {6, []part{{0, 3, 3}, {3, 2, 3}}, false},
	}
	for name, tt := range tests {
		room := make([]ledger.Update, tt.room)
		var shared, own []*shard.Applied
		want := 0
		for _, p := range tt.parts {
			in := &shard.Applied{Updates: room[p.at : p.at : p.at+p.room]}
			for range p.n {
				in.Updates = append(in.Updates, ledger.Update{Account: ledger.Account{Lamports: ledger.Lamports(want)}})
				want++
			}
			shared = append(shared, in)
			own = append(own, &shard.Applied{Updates: append([]ledger.Update(nil), in.Updates...)})
		}
		var r ledger.Record
		join(&r, nil, own)
		mustCount(t, name+", without a room", r.Updates, want)
		r = ledger.Record{}
		join(&r, room, shared)
		mustCount(t, name, r.Updates, want)
		if same := len(r.Updates) > 0 && &r.Updates[0] == &room[0]; same != tt.same {
			t.Errorf("%s: the updates are in the room: %t, want %t", name, same, tt.same)
		}
	}
}

// mustCount checks that the updates count up to a number.
func mustCount(t *testing.T, name string, updates []ledger.Update, want int) {
	t.Helper()
	if len(updates) != want {
		t.Errorf("%s: %d updates, want %d", name, len(updates), want)
	}
	for i := range updates {
		if got := updates[i].Account.Lamports; got != ledger.Lamports(i) {
			t.Errorf("%s: update %d is number %d", name, i, got)
		}
	}
}
