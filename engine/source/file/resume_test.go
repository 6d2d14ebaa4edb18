package file

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"ledgerd/engine/codec"
	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/ledgertest"
)

func statusLine(slot uint64, status string) string {
	return fmt.Sprintf(`{"type":"slot","slot":%d,"status":%q}`, slot, status) + "\n"
}

// recording returns a stream without forks: base state, ten blocks, and statuses that follow
// some slots behind.
func recording() []ledger.Event {
	hash := func(slot ledger.Slot) ledger.Hash { return ledger.Hash(keyOf(byte(slot))) }
	list := []ledger.Event{&ledger.BaseState{Slot: 9}, &ledger.BaseState{}}
	for slot := ledger.Slot(1); slot <= 10; slot++ {
		list = append(list, &ledger.Block{Slot: slot, ParentSlot: slot - 1, Blockhash: hash(slot)})
		if slot%4 == 0 {
			list = append(list, &ledger.BaseState{Slot: slot})
		}
		if slot > 2 {
			list = append(list, &ledger.SlotStatus{Slot: slot - 1, Status: ledger.StatusConfirmed, Blockhash: ledger.Some(hash(slot - 1))})
			list = append(list, &ledger.SlotStatus{Slot: slot - 2, Status: ledger.StatusFinalized, Blockhash: ledger.Some(hash(slot - 2))})
		}
	}
	return list
}

// blockAt returns where the block of a slot stands in a stream.
func blockAt(list []ledger.Event, slot ledger.Slot) int {
	return slices.IndexFunc(list, func(e ledger.Event) bool {
		b, ok := e.(*ledger.Block)
		return ok && b.Slot == slot
	})
}

// whatIsLeft returns what a run resumed at slot owes: the events from its block on, but for
// what is said of slots up to it. If the stream's first status is one of those, it says that the slot is final.
func whatIsLeft(list []ledger.Event, slot ledger.Slot) string {
	var left []ledger.Event
	spoke := false
	for i, e := range list {
		s, isStatus := e.(*ledger.SlotStatus)
		past := isStatus && s.Slot <= slot
		switch {
		case past && !spoke:
			left = append(left, &ledger.SlotStatus{Slot: slot, Status: ledger.StatusFinalized})
		case !past && i >= blockAt(list, slot):
			left = append(left, e)
		}
		spoke = spoke || isStatus
	}
	return outline(left)
}

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

// checkResume resumes at a slot, and compares with what is left of the stream that the files hold.
func checkResume(t *testing.T, files string, list []ledger.Event, slot ledger.Slot) {
	t.Helper()
	s, log := open(t, files)
	got, err := run(s, &ledger.ResumePoint{Slot: slot})
	if want := whatIsLeft(list, slot); err != nil || outline(got) != want || log.Len() > 0 {
		t.Errorf("%d events from slot %d: got %s, err = %v, log %s\nwant %s", len(list), slot, outline(got), err, log, want)
	}
}

// However a stream is divided into files, and at whichever block a run is resumed: with the new files after the old ones, it
// goes on where the old ones ended.
func TestResumeAtEveryBlock(t *testing.T) {
	list := recording()
	for cut := blockAt(list, 1) + 1; cut <= len(list); cut++ {
		lines, file := write(t, "old", eventLinesOf(list[:cut])), write(t, "old", eventFileOf(t, list[:cut]...))
		whole := lines
		if cut < len(list) {
			whole += "," + write(t, "new", eventFileOf(t, list[cut:]...))
		}
		for slot := ledger.Slot(1); blockAt(list[:cut], slot) >= 0; slot++ {
			checkResume(t, lines, list[:cut], slot)
			checkResume(t, file, list[:cut], slot)
			checkResume(t, whole, list, slot)
		}
	}
}

func TestResumeLeavesOutWhatWasIngested(t *testing.T) {
	lines := accountsLine(0, 5) + blockLine(1, 0) + blockLine(2, 1) + accountsLine(2, 6) + blockLine(3, 2) + accountsLine(3, 7)
	answers := "[" + nodeBlock(`"slot":1,`, 0, 1) + "," + nodeBlock(`"slot":2,`, 1, 2) + "]"
	const leftOut, notAgain = `in front of the first block is left out.* first_slot=3 resume_slot=2\n$`, "base state is not loaded again"
	for name, tt := range map[string]struct {
		content   string
		from      ledger.Slot
		want, log string
	}{
		"in the middle":              {lines, 2, "block 2, base 2, block 3, base 3", ""},
		"at the end":                 {lines, 3, "block 3, base 3", ""},
		"the slot is not there":      {blockLine(1, 0) + accountsLine(1, 5) + blockLine(4, 1), 2, "block 4", ""},
		"base state alone":           {accountsLine(0, 5) + accountsLine(7, 5), 2, "base 0, base 7", ""},
		"base state alone in a pipe": {accountsLine(0, 5) + accountsLine(7, 5), 2, "", notAgain},
		"statuses of the past":       {blockLine(1, 0) + statusLine(1, "dead") + statusLine(2, "confirmed"), 2, "finalized 2", ""},
		"statuses of later slots":    {blockLine(1, 0) + statusLine(3, "confirmed") + blockLine(2, 1), 2, "confirmed 3, block 2", ""},
		"above all":                  {lines, 9, "", ""},
		"above all answers":          {answers, 1 << 40, "", ""},
		"above base state in front":  {accountsLine(0, 5) + blockLine(2, 1), 3, "", ""},
		"before all":                 {blockLine(5, 4) + accountsLine(5, 5), 2, "block 5, base 5", ""},
		"base state of a later slot": {accountsLine(9, 5) + blockLine(3, 2), 2, "block 3", leftOut},
		"base state of new files":    {accountsLine(2, 5) + accountsLine(2, 6) + blockLine(3, 2) + blockLine(4, 3), 2, "block 3, block 4", leftOut},
	} {
		path := write(t, "a", tt.content)
		if tt.log == notAgain {
			path = "-"
		}
		s, log := open(t, path)
		s.stdin = strings.NewReader(tt.content)
		got, err := run(s, &ledger.ResumePoint{Slot: tt.from})
		said := regexp.MustCompile(tt.log).MatchString(log.String()) && strings.Count(log.String(), "\n") == min(len(tt.log), 1)
		if err != nil || outline(got) != tt.want || !said {
			t.Errorf("%s: got %q, err = %v, log %q; want %q and %q", name, outline(got), err, log, tt.want, tt.log)
		}
	}
}

// A block that was called dead makes room for another at its slot. When both are held and
// the stream is read again, the status must still mean the first.
func TestStatusesMeanTheSameBlockWhenReadAgain(t *testing.T) {
	other := strings.Replace(blockLine(3, 2), testKey(3), testKey(33), 1)
	path := write(t, "forks", blockLine(2, 1)+blockLine(3, 2)+statusLine(3, "dead")+other+
		statusLine(3, "confirmed")+blockLine(4, 3)+statusLine(4, "finalized")+statusLine(4, "confirmed")+statusLine(7, "dead"))
	s, _ := open(t, path)
	got, err := run(s, &ledger.ResumePoint{Slot: 2, Blockhash: ledger.Hash(keyOf(2))})
	if want := "block 2, block 3, dead 3, block 3, confirmed 3, block 4, finalized 4, confirmed 4, dead 7"; err != nil || outline(got) != want {
		t.Fatalf("got %s, err = %v; want %s", outline(got), err, want)
	}
	first, fourth := ledger.Some(ledger.Hash(keyOf(3))), ledger.Some(ledger.Hash(keyOf(4)))
	unknown := ledger.Opt[ledger.Hash]{}
	for i, want := range map[int]ledger.Opt[ledger.Hash]{
		2: first,   // the only block at slot 3 then
		4: unknown, // there were two
		6: fourth,
		7: fourth,
		8: unknown, // never shown
	} {
		ledgertest.Equal(t, got[i].(*ledger.SlotStatus).Blockhash, want, "the blockhash of event %d, %+v", i, got[i])
	}
	if all := events(t, path); all[2].(*ledger.SlotStatus).Blockhash.Known {
		t.Error("a first run changes what statuses say")
	}
}

// However long an input says nothing of finality, what is remembered of it is bounded, and a
// status never names a block of another slot.
func TestBlocksAreRememberedForAWhile(t *testing.T) {
	hash := func(slot ledger.Slot) ledger.Hash { return ledger.Hash{byte(slot >> 16), byte(slot >> 8), byte(slot)} }
	var last ledger.Event
	k := &sink{from: &ledger.ResumePoint{Slot: 1}, emit: func(_ context.Context, e ledger.Event) error { last = e; return nil }}
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
