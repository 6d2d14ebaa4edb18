package client

import (
	"fmt"
	"testing"
)

// framesOfOneNumber returns 17,500 blocks without an update, of which a thousand are undone seven times.
func framesOfOneNumber() (frames []frame) {
	ends := func(slot uint64, blocks int) uint64 {
		for range blocks {
			frames = append(frames, frame{Type: "slot_end", Slot: slot})
			slot += 2
		}
		return slot
	}
	for slot := uint64(0); len(frames) < 7*2502; slot++ {
		ancestor := ends(slot, 500) - 2
		slot = ends(ancestor+2, 1000)
		frames = append(frames, frame{Type: "rollback", ToSlot: ancestor}, frame{Type: "account_update", Slot: ancestor})
		ends(ancestor+1, 1000)
	}
	return frames
}

// What a stream keeps of one number is bounded. Wherever it resumes nothing is told again for that, and nothing of another fork is missing.
func TestFramesOfOneNumberAreBounded(t *testing.T) {
	frames := framesOfOneNumber()
	for end := 500; end < len(frames); end += 500 {
		s := &stream{same: same{restoring: true}}
		for _, told := range []bool{false, true} {
			for _, f := range frames[:end] {
				if again := s.again(&f, fmt.Append(nil, f)); again != told {
					t.Fatalf("%+v of %d: again = %v, want %v", f, end, again, told)
				}
				if n := len(s.same.newer) + len(s.same.older); n > 2100 {
					t.Fatalf("%d frames are kept at %+v", n, f)
				}
			}
		}
	}
}
