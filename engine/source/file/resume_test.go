package file

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"ledgerd/engine/codec"
	"ledgerd/engine/ledger"
)

func statusLine(slot uint64, status string) string {
	return fmt.Sprintf(`{"type":"slot","slot":%d,"status":%q}`, slot, status) + "\n"
}

// recording returns a stream without forks: base state, ten blocks, and statuses that follow
// some slots behind.
func recording() []ledger.Event {
	hash := func(slot ledger.Slot) ledger.Hash { return ledger.Hash(mustKey(testKey(byte(slot)))) }
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

// writeStream writes a stream as event lines or as an event file.
func writeStream(t *testing.T, name string, binary bool, list []ledger.Event) string {
	t.Helper()
	var b bytes.Buffer
	events, err := codec.NewEventWriter(&b)
	if !binary {
		b.Reset()
	}
	for _, e := range list {
		if binary && err == nil {
			err = events.Write(e)
		} else if !binary {
			b.Write(AppendEventLine(nil, e))
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return write(t, name, b.String())
}

func TestResumeAtEveryBlock(t *testing.T) {
	list := recording()
	for _, binary := range []bool{false, true} {
		path := writeStream(t, "recorded", binary, list)
		for slot := ledger.Slot(1); slot <= 10; slot++ {
			s, log := open(t, path)
			got, err := run(s, &ledger.ResumePoint{Slot: slot})
			if want := whatIsLeft(list, slot); err != nil || outline(got) != want {
				t.Errorf("binary %v, from slot %d: got %s, err = %v\nwant %s", binary, slot, outline(got), err, want)
			}
			if log.Len() > 0 {
				t.Errorf("binary %v, from slot %d: log %s", binary, slot, log)
			}
		}
	}
}

// However a stream is divided into files, and whichever of them had ended before: with the
// new files after the old ones, a run goes on where the old ones ended.
func TestNewFilesGoOnAfterOldOnes(t *testing.T) {
	list := recording()
	for cut := blockAt(list, 1) + 1; cut < len(list); cut++ {
		last := ledger.Slot(1)
		for blockAt(list[:cut], last+1) >= 0 {
			last++
		}
		old := writeStream(t, "old", false, list[:cut])
		s, _ := open(t, old)
		got, err := run(s, &ledger.ResumePoint{Slot: last})
		if want := whatIsLeft(list[:cut], last); err != nil || outline(got) != want {
			t.Errorf("cut at %d, old file: got %s, err = %v; want %s", cut, outline(got), err, want)
		}
		both := old + "," + writeStream(t, "new", true, list[cut:])
		s, _ = open(t, both)
		got, err = run(s, &ledger.ResumePoint{Slot: last})
		if want := whatIsLeft(list, last); err != nil || outline(got) != want {
			t.Errorf("cut at %d, both files: got %s, err = %v; want %s", cut, outline(got), err, want)
		}
	}
}

func TestInputThatEndedBeforeEndsQuietly(t *testing.T) {
	answer := "[" + nodeBlock(`"slot":1,`, 0, 1) + "," + nodeBlock(`"slot":2,`, 1, 2) + "]"
	for name, content := range map[string]string{
		"lines": blockLine(1, 0) + blockLine(2, 1), "a node's answers": answer, "base state first": accountsLine(0, 5) + blockLine(2, 1),
	} {
		for _, from := range []ledger.Slot{3, 1 << 40} {
			s, log := open(t, write(t, "a", content))
			got, err := run(s, &ledger.ResumePoint{Slot: from})
			if err != nil || len(got) != 0 || log.Len() > 0 {
				t.Errorf("%s, from %d: got %s, err = %v, log %s", name, from, outline(got), err, log)
			}
		}
	}
}

// New files alone lose the base state in front of their first block. That is said.
func TestBaseStateOfNewFilesAloneIsSaidToBeLeftOut(t *testing.T) {
	path := write(t, "new", accountsLine(2, 5)+accountsLine(2, 6)+blockLine(3, 2)+blockLine(4, 3))
	s, log := open(t, path)
	got, err := run(s, &ledger.ResumePoint{Slot: 2})
	if err != nil || outline(got) != "block 3, block 4" {
		t.Errorf("got %s, err = %v", outline(got), err)
	}
	if text := log.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, "left out") || !strings.Contains(text, "first_slot=3 resume_slot=2") {
		t.Errorf("log %s", text)
	}
}

// A block that was called dead makes room for another at its slot. When both are held and
// the stream is read again, the status must still mean the first.
func TestStatusesMeanTheSameBlockWhenReadAgain(t *testing.T) {
	other := strings.Replace(blockLine(3, 2), testKey(3), testKey(33), 1)
	path := write(t, "forks", blockLine(2, 1)+blockLine(3, 2)+statusLine(3, "dead")+other+
		statusLine(3, "confirmed")+blockLine(4, 3)+statusLine(4, "finalized")+statusLine(4, "confirmed")+statusLine(7, "dead"))
	s, _ := open(t, path)
	got, err := run(s, &ledger.ResumePoint{Slot: 2, Blockhash: ledger.Hash(mustKey(testKey(2)))})
	if want := "block 2, block 3, dead 3, block 3, confirmed 3, block 4, finalized 4, confirmed 4, dead 7"; err != nil || outline(got) != want {
		t.Fatalf("got %s, err = %v; want %s", outline(got), err, want)
	}
	first, fourth := ledger.Some(ledger.Hash(mustKey(testKey(3)))), ledger.Some(ledger.Hash(mustKey(testKey(4))))
	unknown := ledger.Opt[ledger.Hash]{}
	for i, want := range map[int]ledger.Opt[ledger.Hash]{
		2: first,   // the only block at slot 3 then
		4: unknown, // there were two
		6: fourth,
		7: fourth,
		8: unknown, // never shown
	} {
		if s := got[i].(*ledger.SlotStatus); s.Blockhash != want {
			t.Errorf("event %d, %s of slot %d: blockhash %+v, want %+v", i, s.Status, s.Slot, s.Blockhash, want)
		}
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
		if err := k.put(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	names := func(slot ledger.Slot, want ledger.Opt[ledger.Hash]) {
		t.Helper()
		put(&ledger.SlotStatus{Slot: slot, Status: ledger.StatusConfirmed})
		if s := last.(*ledger.SlotStatus); s.Slot != slot || s.Blockhash != want {
			t.Errorf("the status of slot %d comes as one of slot %d that names %+v, want %+v", slot, s.Slot, s.Blockhash, want)
		}
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
