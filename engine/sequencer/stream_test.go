package sequencer

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/ledgertest"
	"ledgerd/snapshot"
)

// shownParts are what a stream shows besides the blocks of a test.
type shownParts struct {
	expected  ledger.Slot // of a block that is not whole
	elsewhere ledger.Hash // of a block that is not where its child says
}

func (p shownParts) Expects(slot ledger.Slot) bool                       { return slot == p.expected }
func (p shownParts) ShowsElsewhere(hash ledger.Hash, _ ledger.Slot) bool { return hash == p.elsewhere }

// streamed returns a sequencer for a stream that holds block a1, or none yet.
func streamed(fresh bool) *Sequencer {
	s := bare(ledger.SourceInfo{Live: true, Stream: true})
	if !fresh {
		root := &ledger.Block{Slot: 1, Blockhash: ledger.Hash{'a', 1}}
		meta := &snapshot.Meta{Version: 1, Slot: 1, Block: root, Blockhash: root.Blockhash, BaseOnly: true}
		s.ResumeAt(meta, 0, nil, ledger.Opt[ledger.Slot]{})
		s.ResumeSource()
	}
	return s
}

// ask returns the answer to a question.
func ask(t *testing.T, s *Sequencer, p shownParts, restart bool) ledger.Verdict {
	t.Helper()
	answer := make(chan ledger.Verdict, 1)
	ledgertest.Must(t, s.Handle(&ledger.Question{Shown: p, Restart: restart, Answer: answer}))
	select {
	case v := <-answer:
		return v
	default:
		t.Fatal("a question is not answered")
	}
	return ledger.Verdict{}
}

// blockID returns the block that a name stands for: b3 is block b of slot 3.
func blockID(name string) ledger.BlockID {
	slot, err := strconv.Atoi(name[1:])
	if err != nil {
		panic(err)
	}
	return ledger.BlockID{Slot: ledger.Slot(slot), Hash: ledger.Hash{name[0], byte(slot)}}
}

func nameOf(id ledger.BlockID) string { return fmt.Sprintf("%c%d", id.Hash[0], id.Slot) }

// shown returns what a word of a script shows. "b3<a1" is block b of slot 3 on block a1, with "!" as who fills gaps
// shows it: confirmed. "c:a3" calls that block confirmed, "f:a3" final and "d:a3" dead, and "c:3" names its slot alone.
func shown(word string) ledger.Event {
	child, parent, isBlock := strings.Cut(strings.TrimSuffix(word, "!"), "<")
	if isBlock {
		own, p := blockID(child), blockID(parent)
		b := &ledger.Block{Slot: own.Slot, Blockhash: own.Hash, ParentSlot: p.Slot, PreviousBlockhash: ledger.Some(p.Hash)}
		if strings.HasSuffix(word, "!") {
			b.Status = ledger.Confirmed
		}
		return b
	}
	what, of, _ := strings.Cut(word, ":")
	said := map[string]ledger.Status{"c": ledger.StatusConfirmed, "f": ledger.StatusFinalized, "d": ledger.StatusDead}[what]
	if of[0] <= '9' {
		return &ledger.SlotStatus{Status: said, Slot: blockID("?" + of).Slot}
	}
	id := blockID(of)
	return &ledger.SlotStatus{Status: said, Slot: id.Slot, Blockhash: ledger.Some(id.Hash)}
}

// TestStreams tells a sequencer a script. "again" begins another session. The answer is the tip, the confirmed and the
// finalized block, and what else there is to tell.
func TestStreams(t *testing.T) {
	const wrong = " wrong"
	for name, tt := range map[string]struct {
		script string
		shown  shownParts
		want   string
	}{
		"a block waits for its parent":             {"a3<a2 a2<a1", shownParts{}, "a3 a1 a1"},
		"a parent that is missing":                 {"a2<a1 a4<a3 a5<a4", shownParts{}, "a2 a1 a1, gap a1-3"},
		"a parent that is under way":               {"a2<a1 a4<a3", shownParts{expected: 3}, "a2 a1 a1"},
		"a confirmed block needs it now":           {"a2<a1 a4<a3 a5<a4 c:a5", shownParts{expected: 3}, "a2 a1 a1, gap a1-3 confirmed"},
		"confirmed gaps come first":                {"a4<a3 a9<a8 c:a9", shownParts{}, "a1 a1 a1, gap a1-8 confirmed"},
		"the lower gap comes first":                {"a9<a8 a4<a3", shownParts{}, "a1 a1 a1, gap a1-3"},
		"after the confirmed block":                {"a2<a1 c:a2 a5<a4", shownParts{}, "a2 a2 a1, gap a2-4"},
		"another branch than the confirmed one":    {"a2<a1 a3<a2 c:a3 b4<b2 c:b4", shownParts{}, "a3 a3 a1, gap a1-2 confirmed"},
		"a branch that comes to nothing":           {"a2<a1 a3<a2 c:a3 b4<b2", shownParts{}, "a3 a3 a1"},
		"below the root, not confirmed":            {"b2<b1 b3<b2", shownParts{}, "a1 a1 a1"},
		"below the root, confirmed":                {"b2<b1 b3<b2 c:b3", shownParts{}, "a1 a1 a1," + wrong},
		"a parent above its child":                 {"a2<a3", shownParts{}, "a1 a1 a1," + wrong},
		"another block is confirmed at the root":   {"c:b1", shownParts{}, "a1 a1 a1," + wrong},
		"a new session forgets what waits":         {"a4<a3 b2<b1 c:b2 again", shownParts{}, "a1 a1 a1"},
		"two blocks at a slot, one confirmed":      {"a2<a1 b2<a1 c:b2", shownParts{}, "a2 a1 a1, twice 1"},
		"two at a slot, one of which waits":        {"a3<a2 b3<a1 c:b3", shownParts{}, "b3 a1 a1, gap a1-2, twice 1"},
		"two at a slot, what builds on one tells":  {"a2<a1 b2<a1 a3<a1 b3<b2 b4<b3 c:b4", shownParts{}, "b4 b4 a1, twice 2"},
		"two at a slot, one was dead":              {"a2<a1 d:a2 b2<a1 c:b2", shownParts{}, "b2 b2 a1"},
		"two at a slot, one was filled":            {"b2<a1 c:b2 a2<a1!", shownParts{}, "a2 a2 a1, twice 1"},
		"a slot alone, not confirmed":              {"a2<a1 c:2 f:2", shownParts{}, "a2 a1 a1"},
		"a slot alone, confirmed":                  {"a2<a1 a3<a2 c:a2 f:2", shownParts{}, "a3 a2 a2"},
		"a slot alone is dead":                     {"a2<a1 d:2", shownParts{}, "a2 a1 a1"},
		"final, nothing builds on it":              {"a2<a1 f:a2", shownParts{}, "a2 a2 a1"},
		"final, another builds on it":              {"a2<a1 f:a2 a3<a2", shownParts{}, "a3 a2 a2"},
		"final, on a branch that goes on":          {"a2<a1 a5<a2 b3<a1 b4<b3 f:b3", shownParts{}, "b4 b3 b3"},
		"final while it waits":                     {"a4<a3 a3<a2 f:a3 a2<a1", shownParts{}, "a4 a3 a3"},
		"beside the final block":                   {"a3<a2 f:a3 a4<a3 b4<a2 a2<a1", shownParts{}, "a4 a3 a3"},
		"the root is dead":                         {"d:a1", shownParts{}, "a1 a1 a1, twice 1"},
		"wrong about slots below the root":         {"a2<a1 a3<a2 a4<a3 f:a2 f:a3 c:b2 d:a2 d:a1", shownParts{}, "a4 a3 a3"},
		"dead, and shown again":                    {"a2<a1 a3<a2 d:a2 again a2<a1 a3<a2", shownParts{}, "a1 a1 a1"},
		"dead, and confirmed in another session":   {"a2<a1 a3<a2 c:a2 d:a2 again a2<a1 c:a2", shownParts{}, "a3 a2 a1"},
		"dead, and what builds on it is confirmed": {"a2<a1 a3<a2 d:a2 c:a3 a4<a3", shownParts{}, "a4 a3 a1"},
		"dead, and filled":                         {"a2<a1 d:a2 a3<a2 a2<a1!", shownParts{}, "a3 a2 a1"},
		"dead again after it was confirmed":        {"a2<a1 d:a2 c:a2 d:a2", shownParts{}, "a2 a2 a1, twice 1"},
		"dead while it waits":                      {"a3<a2 d:a3", shownParts{}, "a1 a1 a1"},
		"dead while it waits, and confirmed":       {"a3<a2 a4<a3 d:a3 c:a4", shownParts{}, "a1 a1 a1, gap a1-2 confirmed"},
		"fresh, nothing is confirmed":              {"fresh a2<a1 a3<a2", shownParts{}, "none"},
		"fresh, nothing builds on it":              {"fresh b2<a1 c:b2 a3<a2", shownParts{}, "none"},
		"fresh, the lowest one":                    {"fresh a2<a1 a3<a2 a4<a3 c:a3 a5<a4", shownParts{}, "a5 a3 a2"},
		"fresh, confirmed before another builds":   {"fresh a2<a1 c:a2 again a2<a1 c:a2 a3<a2", shownParts{}, "a3 a2 a2"},
		"fresh, dead":                              {"fresh a2<a1 a3<a2 d:a2 c:a2 a4<a3 c:a3", shownParts{}, "a4 a3 a3"},
		"fresh, its parent is elsewhere":           {"fresh a3<a1 a4<a3 c:a3", shownParts{elsewhere: ledger.Hash{'a', 1}}, "none," + wrong},
	} {
		words := strings.Fields(tt.script)
		s := streamed(words[0] == "fresh")
		for _, word := range words {
			switch word {
			case "fresh":
			case "again":
				ask(t, s, tt.shown, true)
			default:
				if err := s.Handle(shown(word)); err != nil {
					t.Fatalf("%s: %s: %v", name, word, err)
				}
			}
		}
		v := ask(t, s, tt.shown, false)
		if made, err := s.Seal(); err != nil || words[0] == "fresh" && len(made.Records) > 0 && made.Records[0].Kind != ledger.BlockRecord {
			t.Errorf("%s: it begins with %+v, %v", name, made.Records[0], err)
		}
		got := "none"
		if v.Rooted {
			got = strings.Join([]string{nameOf(v.Tip), nameOf(v.Confirmed), nameOf(v.Root)}, " ")
		}
		if g := v.Gap.Value; v.Gap.Known {
			got += fmt.Sprintf(", gap %s-%d", nameOf(g.After), g.UpTo)
			if g.Confirmed {
				got += " confirmed"
			}
		}
		if v.Wrong != nil {
			got += "," + wrong
		}
		if v.Contradictions > 0 {
			got += fmt.Sprintf(", twice %d", v.Contradictions)
		}
		ledgertest.Equal(t, got, tt.want, "%s: %s (%v)", name, tt.script, v.Wrong)
	}
}

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

// TestWhatWaitsInAStreamIsBounded has blocks of more than 256 MiB wait, which share their writes.
func TestWhatWaitsInAStreamIsBounded(t *testing.T) {
	s, writes := streamed(false), make([]ledger.AccountWrite, 50_000)
	for slot := ledger.Slot(3); slot < 35; slot++ {
		b := &ledger.Block{Slot: 2 * slot, ParentSlot: 2*slot - 1, Blockhash: ledger.Hash{byte(slot)}, Accounts: writes}
		ledgertest.Must(t, s.Handle(b))
	}
	ledgertest.ErrorIs(t, ask(t, s, shownParts{}, false).Wrong, ledger.ErrTooMuchWaits, "the answer")
	if n := len(s.Chain().Waiting); n > 8 {
		t.Errorf("%d blocks wait still", n)
	}
	if v := ask(t, s, shownParts{}, true); v.Wrong != nil || len(s.Chain().Waiting) > 0 {
		t.Errorf("in the next session the answer is %v", v.Wrong)
	}
}

// TestQuestionsAreAnsweredWhileTooMuchIsUnfinalized has a stream go on for more than 1 GiB without a status.
func TestQuestionsAreAnsweredWhileTooMuchIsUnfinalized(t *testing.T) {
	s, writes := streamed(false), make([]ledger.AccountWrite, 16_000)
	for slot := ledger.Slot(2); !s.Paused(); slot++ {
		b := &ledger.Block{Slot: slot, ParentSlot: slot - 1, Blockhash: ledger.Hash{byte(slot)}, Accounts: writes}
		ledgertest.Must(t, s.Handle(b))
	}
	if v := ask(t, s, shownParts{}, false); v.Placed < 90 || v.Gap.Known || v.Wrong != nil {
		t.Errorf("the answer is %+v", v)
	}
}
