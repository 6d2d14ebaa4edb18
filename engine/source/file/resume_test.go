package file

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"ledgerd/engine/codec"
	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/ledgertest"
)

// eventFileOf returns a stream as an event file.
func eventFileOf(t testing.TB, list ...ledger.Event) string {
	t.Helper()
	var b bytes.Buffer
	events, err := codec.NewEventWriter(&b)
	for _, e := range list {
		err = errors.Join(err, events.Write(e))
	}
	must(t, err)
	return b.String()
}

// eventLinesOf returns a stream as event lines.
func eventLinesOf(list []ledger.Event) (lines string) {
	for _, e := range list {
		lines += string(AppendEventLine(nil, e))
	}
	return lines
}

// TestResumeLeavesOutWhatWasIngested repeats testdata/resume.txt: below a name from which slot a run resumes, or from the front, and of a pipe or not; then what the
// input holds, where a slot with a prime has another block, and "block 4<2" builds on slot 2; after ">" what is emitted, with the block that a status names, or that a block says it builds on, and after "!" the error and what is logged.
func TestResumeLeavesOutWhatWasIngested(t *testing.T) {
	ledgertest.Scenes(t, "testdata/resume.txt", "# ", *update, func(t *testing.T, scene string) string {
		lines := strings.Split(scene, "\n")[:3]
		number, isPipe := strings.CutSuffix(strings.TrimPrefix(lines[1], "from "), " of a pipe")
		var from *ledger.ResumePoint
		if slot, err := strconv.ParseUint(number, 10, 64); err == nil {
			from = &ledger.ResumePoint{Slot: ledger.Slot(slot), Blockhash: ledger.Hash(keyOf(byte(slot)))}
		}
		content := ""
		for piece := range strings.SplitSeq(lines[2], ", ") {
			content += lineOf(piece)
		}
		path := "-"
		if !isPipe {
			path = write(t, "a", content)
		}
		s, log := open(t, path)
		s.stdin = strings.NewReader(content)
		got, err := run(s, from)
		lines = append(lines, "> "+outline(got))
		if err != nil {
			lines = append(lines, "! "+err.Error())
		}
		for line := range strings.Lines(log.String()) {
			_, said, _ := strings.Cut(strings.TrimSpace(line), " msg=")
			lines = append(lines, "! "+said)
		}
		return "# " + strings.Join(lines, "\n") + "\n\n"
	})
}

// lineOf returns the event line that outline names so, of a block on the slot before.
func lineOf(piece string) string {
	kind, number, _ := strings.Cut(piece, " ")
	number, on, builds := strings.Cut(number, "<")
	number, isTwin := strings.CutSuffix(number, "'")
	slot, _ := strconv.ParseUint(number, 10, 64)
	parent := slot - 1
	if builds {
		parent, _ = strconv.ParseUint(on, 10, 64)
	}
	switch {
	case isTwin:
		return strings.Replace(blockLine(slot, parent), testKey(byte(slot)), testKey(byte(slot)+100), 1)
	case kind == "block":
		return blockLine(slot, parent)
	case kind == "base":
		return accountsLine(slot, 5)
	}
	return fmt.Sprintf(`{"type":"slot","slot":%d,"status":%q}`, slot, kind) + "\n"
}

// However long an input says nothing of finality, what is remembered of it is bounded, and a
// status never names a block of another slot.
func TestBlocksAreRememberedForAWhile(t *testing.T) {
	hash := func(slot ledger.Slot) ledger.Hash { return ledger.Hash{byte(slot >> 16), byte(slot >> 8), byte(slot)} }
	var last ledger.Event
	k := &sink{from: &ledger.ResumePoint{Slot: 1, Blockhash: hash(1)}, emit: func(_ context.Context, e ledger.Event) error { last = e; return nil }}
	put := func(e ledger.Event) {
		t.Helper()
		must(t, k.put(t.Context(), e))
	}
	names := func(slot ledger.Slot, want ledger.Opt[ledger.Hash]) {
		t.Helper()
		put(&ledger.SlotStatus{Slot: slot, Status: ledger.StatusConfirmed})
		ledgertest.Equal[ledger.Event](t, last, &ledger.SlotStatus{Slot: slot, Status: ledger.StatusConfirmed, Blockhash: want}, "what comes")
	}
	names(7, ledger.Opt[ledger.Hash]{})
	const newest = ledger.Slot(3 * seenSlots)
	for slot := ledger.Slot(1); slot <= newest; slot++ {
		if slot%5 != 0 || slot == newest { // the others are skipped
			put(&ledger.Block{Slot: slot, ParentSlot: slot - 1, Blockhash: hash(slot)})
		}
	}
	names(newest, ledger.Some(hash(newest)))
	names(newest-seenSlots+1, ledger.Some(hash(newest-seenSlots+1)))
	names(newest-seenSlots, ledger.Opt[ledger.Hash]{})
	names(newest+2, ledger.Opt[ledger.Hash]{})
	names(newest-3, ledger.Opt[ledger.Hash]{})
	put(&ledger.Block{Slot: newest - seenSlots, Blockhash: hash(1)}) // late: it makes room for nobody
	names(newest, ledger.Some(hash(newest)))
	put(&ledger.Block{Slot: newest, Blockhash: hash(1)})
	names(newest, ledger.Opt[ledger.Hash]{})
}
