package bloom

import "testing"

// TestFilterHasWhatWasAdded adds keys whose numbers follow each other, or are far between, and asks for these and for others.
func TestFilterHasWhatWasAdded(t *testing.T) {
	for _, keys := range []int{1, 3, 31, 32, 33, 500, 20_000} {
		for _, stride := range []int{1, 2, 4096, 99_991} {
			f, wrong := newFilter(keys), 0
			number := func(i int) uint64 { return uint64(1 + i*stride) }
			for i := range keys {
				f.add(number(i))
			}
			stored, ok := Decode(f.Append(nil))
			if !ok {
				t.Fatalf("the bytes of a filter of %d keys are none", keys)
			}
			for i := range keys {
				if !f.Has(number(i)) || f.add(number(i)) || !stored.Has(number(i)) {
					t.Fatalf("one of %d keys, %d apart, was added and is not there", keys, stride)
				}
			}
			const others = 20_000
			for i := range others {
				if f.Has(number(keys + i)) {
					wrong++
				}
			}
			if wrong > others/50 {
				t.Errorf("%d of %d keys that were not added to %d, %d apart, seem to be there", wrong, others, keys, stride)
			}
			t.Logf("%d keys, %d apart: %d of %d", keys, stride, wrong, others)
		}
	}
	if newFilter(0).Has(7) {
		t.Error("an empty filter has a key")
	}
	if _, ok := Decode(make([]byte, lineBytes+1)); ok {
		t.Error("bytes of a length that no filter has are one")
	}
}
