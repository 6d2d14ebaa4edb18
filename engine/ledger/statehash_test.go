package ledger

import (
	"testing"
)

func TestStateHashCarriesAndWraps(t *testing.T) {
	const most = 1<<64 - 1
	for sum, from := range map[StateHash]StateHash{{0, 0, 1, 0}: {most, most, 0, 0}, {}: {most, most, most, most}} {
		h := from
		if h.Add(StateHash{1}); h != sum {
			t.Errorf("%v and 1 is %v, want %v", from, h, sum)
		}
		if h.Sub(StateHash{1}); h != from {
			t.Errorf("%v less 1 is %v, want %v", sum, h, from)
		}
	}
	if got, want := (StateHash{1, 2, 3, 4}).String(), "0000000000000004000000000000000300000000000000020000000000000001"; got != want {
		t.Errorf("String = %s, want %s", got, want)
	}
}
