package sequencer

import (
	"strings"
	"testing"

	"ledgerd/engine/ledger"
)

// F20, F24, F29: a block on an orphan of the finalized slot, and one on that, can never join the tree. One on a block that was never
// shown waits: to pass over it in silence would hide that two ledgers were mixed up. What is held or waits already is a duplicate.
func TestBlocksBesideTheFinalizedOne(t *testing.T) {
	s := bare(ledger.SourceInfo{})
	for _, word := range strings.Fields("r1<r0 a2<r1 a2<r1 r1<r0 b2<r1 f:a2 b3<b2 b4<b3 u3<u2 u3<u2") {
		if err := s.Handle(shown(word)); err != nil {
			t.Fatalf("%s: %v", word, err)
		}
	}
	c, waiting := s.Counters(), s.Chain().Waiting
	if c.Orphans != 2 || c.Duplicates != 3 || len(waiting) != 1 || nameOf(waiting[0].ID()) != "u3" {
		t.Errorf("%d orphans, %d duplicates, %d blocks wait, want b3 and b4, three, and u3", c.Orphans, c.Duplicates, len(waiting))
	}
}
