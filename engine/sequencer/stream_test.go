package sequencer

import (
	"flag"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/ledgertest"
	"ledgerd/snapshot"
)

var update = flag.Bool("update", false, "rewrite the answers in testdata")

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

// TestStreams tells a sequencer the scripts in testdata, which shown reads, in which "again" begins another session, "fresh" has no block yet, and
// "expects:3" and "elsewhere:a1" set shownParts. -update rewrites the answers.
func TestStreams(t *testing.T) {
	const file = "testdata/streams.txt"
	var text strings.Builder
	for line := range strings.Lines(string(ledgertest.ReadFile(t, file))) {
		if row := strings.Split(line, "|"); len(row) == 3 {
			line = fmt.Sprintf("%s|%s| %s\n", row[0], row[1], playStream(t, strings.Fields(row[1])))
		}
		text.WriteString(line)
	}
	ledgertest.Golden(t, file, text.String(), *update)
}

// playStream returns the answer at the end of a script.
func playStream(t *testing.T, words []string) string {
	t.Helper()
	parts, fresh := shownParts{}, slices.Contains(words, "fresh")
	s := streamed(fresh)
	for _, word := range words {
		switch what, of, _ := strings.Cut(word, ":"); what {
		case "fresh":
		case "expects":
			parts.expected = blockID("?" + of).Slot
		case "elsewhere":
			parts.elsewhere = blockID(of).Hash
		case "again":
			ask(t, s, parts, true)
		default:
			ledgertest.Must(t, s.Handle(shown(word)))
		}
	}
	v := ask(t, s, parts, false)
	if made, err := s.Seal(); err != nil || fresh && len(made.Records) > 0 && made.Records[0].Kind != ledger.BlockRecord {
		t.Errorf("%s: it begins with %+v, %v", words, made.Records[0], err)
	}
	got := "none"
	if v.Rooted {
		got = strings.Join([]string{nameOf(v.Tip), nameOf(v.Confirmed), nameOf(v.Root)}, " ")
	}
	if g := v.Gap.Value; v.Gap.Known {
		got += fmt.Sprintf(", gap %s-%d%s", nameOf(g.After), g.UpTo, map[bool]string{true: " confirmed"}[g.Confirmed])
	}
	if v.Wrong != nil {
		got += fmt.Sprintf(", wrong: %v", v.Wrong)
	}
	if v.Contradictions > 0 {
		got += fmt.Sprintf(", twice %d", v.Contradictions)
	}
	return got
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

// TestTooMuchUnfinalizedNamesWhatHelps has sources go on without a status: a higher limit of memory helps only where it raises the bound.
func TestTooMuchUnfinalizedNamesWhatHelps(t *testing.T) {
	const (
		none    = "the source has finalized none of them yet"
		byDepth = "without a status of the source none is final before there are 32"
		remedy  = ": a higher --memory-limit lets more be held"
	)
	writes := make([]ledger.AccountWrite, 64_000)
	for _, c := range []struct {
		limit         int64
		byDepth, seen bool // the source may have no statuses; it has shown one
		want          string
	}{
		{0, false, false, none},
		{64 << 20, false, false, none + remedy},
		{4<<30 - 4, false, false, none + remedy},
		{4 << 30, false, false, none},
		{0, true, false, byDepth},
		{64 << 20, true, false, byDepth + remedy},
		{64 << 20, true, true, none + remedy},
		{8 << 30, true, false, byDepth},
	} {
		s := bare(ledger.SourceInfo{FinalityByDepth: c.byDepth})
		s.config.MemoryLimit, s.statusSeen = c.limit, c.seen
		var err error
		for slot := ledger.Slot(1); err == nil && slot < 100; slot++ {
			err = s.Handle(&ledger.Block{Slot: slot, ParentSlot: slot - 1, Blockhash: ledger.Hash{byte(slot)}, Accounts: writes})
		}
		want := fmt.Sprintf("%d bytes are held for blocks that are unfinalized, and %s", s.chain.UnfinalizedBytes, c.want)
		ledgertest.Equal(t, fmt.Sprint(err), want, "with a limit of %d", c.limit)
	}
}
