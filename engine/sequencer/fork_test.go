package sequencer

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"ledgerd/engine/chain"
	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/ledgertest"
)

// decide replays a log and shows a script until an event is refused. It returns the tip, the newest confirmed and the newest
// finalized block, whether the last event was refused, how many blocks wait, and the whole log.
func decide(t *testing.T, log []*ledger.Record, script []string) (got string, all []*ledger.Record) {
	s := bare()
	ledgertest.Must(t, s.Replay(log))
	s.ResumeSource()
	var refused *chain.RefusedError
	for i, word := range script {
		err := s.Handle(shown(word))
		if err == nil {
			continue
		}
		if i < len(script)-1 || !errors.As(err, &refused) {
			t.Fatalf("%v: %s: %v", script, word, err)
		}
	}
	b, err := s.Seal()
	ledgertest.Must(t, err)
	c := s.Chain()
	got = strings.Join([]string{nameOf(c.Tip.ID()), nameOf(c.Confirmed.ID()), nameOf(c.Finalized.ID())}, " ")
	if refused != nil {
		got += ", refused"
	}
	if n := len(c.Waiting); n > 0 {
		got += fmt.Sprintf(", %d waits", n)
	}
	return got, b.Records
}

// F22, F23, F24, F29: TestForkChoice shows scripts of block r1 and what builds on it. Stopped after any event, restarted from its
// log and shown all events again, a chain ends the same.
func TestForkChoice(t *testing.T) {
	// long is a chain of slots 2 to last.
	long := func(last int) string {
		script := "a2<r1"
		for slot := 3; slot <= last; slot++ {
			script += fmt.Sprintf(" a%d<a%d", slot, slot-1)
		}
		return script
	}
	tests := map[string]struct{ script, want string }{
		"the higher slot wins":                     {"a2<r1 b3<r1", "b3 r1 r1"},
		"the lower slot does not":                  {"b3<r1 a2<r1", "b3 r1 r1"},
		"an equal slot does not":                   {"b4<b3 a2<r1 a4<a2 b3<r1", "a4 r1 r1"},
		"confirmed beats processed":                {"b3<r1 b4<b3 a2<r1 c:a2", "a2 a2 r1"},
		"a higher slot beside the confirmed block": {"a2<r1 c:a2 b3<r1 b4<b3", "a2 a2 r1"},
		"the confirmed block's best descendant":    {"b3<r1 a2<r1 a4<a2 c5<a2 c:a2", "c5 a2 r1"},
		"the lower hash of the best descendants":   {"b3<r1 b4<b3 a2<r1 c4<a2 a4<a2 c:a2", "a4 a2 r1"},
		"the order of arrival":                     {"a4<a2 b5<b4 b4<b3 b3<r1 a2<r1", "b5 r1 r1"},
		"finalized is never undone":                {"a2<r1 b3<r1 b4<b3 f:a2 b5<b4", "a2 a2 a2"},
		"finalized is never dead":                  {"a2<r1 f:a2 d:a2", "a2 a2 a2, refused"},
		"finalized beats confirmed":                {"b3<r1 c:b3 a2<r1 a4<a2 f:a2", "a4 a2 a2"},
		"a dead tip":                               {"a2<r1 a4<a2 d:a4 a4<a2", "a2 r1 r1"},
		"a dead tip beside a lower block":          {"a2<r1 a4<a2 c5<a2 d:c5", "a4 r1 r1"},
		"a dead confirmed block":                   {"a2<r1 c:a2 b3<r1 d:a2", "b3 r1 r1"},
		"a dead block above the confirmed one":     {"a2<r1 c:a2 a4<a2 b5<b4 d:a4", "a2 a2 r1, 1 waits"},
		"children of a dead block":                 {"b3<r1 a2<r1 d:b3 b4<b3 b5<b4", "a2 r1 r1"},
		"a dead block whose child is confirmed":    {"b3<r1 d:b3 b4<b3 c:b4 b5<b4", "b5 b4 r1"},
		"a block that is dead while it waits":      {"b4<b3 d:b4 b3<r1", "b3 r1 r1"},
		"a block that is confirmed while it waits": {"a2<r1 b4<b3 c:b4 c5<a2 b3<r1", "b4 b4 r1"},
		"on an orphan of the finalized slot":       {"a2<r1 b2<r1 f:a2 b3<b2 b4<b3", "a2 a2 a2"},
		"32 blocks are undone":                     {long(33) + " d60<r1", "d60 r1 r1"},
		"33 blocks would be undone":                {long(34) + " d60<r1", "a34 r1 r1, refused"},
		"33 blocks would be undone by a status":    {long(34) + " b3<r1 c:b3", "a34 r1 r1, refused"},
	}
	for name, tt := range tests {
		script := strings.Fields("r1<r0 " + tt.script)
		for stop := range script {
			_, log := decide(t, nil, script[:stop+1])
			if got, _ := decide(t, log, script); got != tt.want {
				t.Errorf("%s, stopped after event %d: %s, want %s", name, stop, got, tt.want)
			}
		}
	}
}

// F20, F24, F29: a block on an orphan of the finalized slot, and one on that, can never join the tree. One on a block that was never
// shown waits: to pass over it in silence would hide that two ledgers were mixed up. What is held or waits already is a duplicate.
func TestBlocksBesideTheFinalizedOne(t *testing.T) {
	s := bare()
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
