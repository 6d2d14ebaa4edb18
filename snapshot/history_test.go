package snapshot

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"syscall"
	"testing"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/ledgertest"
	"ledgerd/snapshot/vfs/vfstest"
)

// slots returns the first and last slot of each history file.
func slots(refs []HistoryRef) (s []ledger.Slot) {
	for _, r := range refs {
		s = append(s, r.First, r.Last)
	}
	return s
}

func TestHistoryIsWrittenOnceAndReferredTo(t *testing.T) {
	disk := vfstest.NewMemory()
	s := openTestStore(t, disk)
	steps := []struct {
		slot, floor ledger.Slot
		restart     bool
		want        []ledger.Slot
	}{
		{20, 0, false, []ledger.Slot{0, 20}},
		{30, 0, false, []ledger.Slot{0, 20, 22, 30}},
		{30, 0, false, []ledger.Slot{0, 20, 22, 30}}, // the same block again, no file more
		{40, 0, true, []ledger.Slot{0, 20, 22, 30, 32, 40}},
		{50, 20, false, []ledger.Slot{0, 20, 22, 30, 32, 40, 42, 50}}, // slot 20 is still needed
		{52, 21, true, []ledger.Slot{22, 30, 32, 40, 42, 50, 52, 52}},
		{90, 80, false, []ledger.Slot{80, 90}},
		{92, 92, false, []ledger.Slot{92, 92}},
	}
	for _, step := range steps {
		if step.restart {
			s = openTestStore(t, disk)
		}
		st := testState(step.slot, step.floor, 3, 0)
		w := write(t, s, st)
		ledgertest.Equal(t, slots(w.Meta.History), step.want, "at slot %d with floor %d: the history", step.slot, step.floor)
		wantLoaded(t, fmt.Sprintf("at slot %d", step.slot), newest(t, s), 1, st)
	}
}

func TestWriteRefusesToLoseBlocks(t *testing.T) {
	for name, tt := range map[string]struct {
		floor  ledger.Slot
		blocks []HeldBlock
		want   string // "" where nothing is lost
	}{
		"all":                         {0, testBlocks(0, 30), ""},
		"those not held":              {0, testBlocks(22, 30), ""},
		"one missing in front":        {0, testBlocks(24, 30), "the blocks from slot 21 on are missing before the one at slot 24"},
		"one missing at the end":      {0, testBlocks(0, 28), "the history ends before slot 29"},
		"one too many":                {0, testBlocks(0, 32), "the history ends before slot 33"},
		"one missing in the middle":   {0, slices.Concat(testBlocks(22, 24), testBlocks(28, 30)), "the blocks from slot 25 on are missing before the one at slot 28"},
		"order turned round":          {0, slices.Concat(testBlocks(26, 30), testBlocks(22, 24)), "the blocks from slot 21 on are missing before the one at slot 26"},
		"the last two turned round":   {0, slices.Concat(testBlocks(22, 26), testBlocks(30, 30), testBlocks(28, 28)), "the blocks from slot 27 on are missing before the one at slot 30"},
		"none":                        {0, nil, "the history ends before slot 21"},
		"none, nothing held":          {30, nil, "of the block at slot 30"},
		"from the floor on":           {26, testBlocks(26, 30), ""},
		"floor is a skipped slot":     {25, testBlocks(26, 30), ""},
		"one missing above the floor": {26, testBlocks(28, 30), "the blocks from slot 26 on are missing before the one at slot 28"},
	} {
		disk := vfstest.NewMemory()
		s := openTestStore(t, disk)
		write(t, s, testState(20, 0, 3, 0))
		st := testState(30, 0, 3, 0)
		st.meta.Floor = tt.floor
		before := disk.Paths()
		_, err := s.Write(t.Context(), st.meta, st.parts(1), tt.blocks, Pace{})
		switch {
		case tt.want == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want) || !slices.Equal(before, disk.Paths())):
			t.Errorf("%s: err = %v, want one that says %q; it left %v, before it was %v", name, err, tt.want, disk.Paths(), before)
		}
	}
}

// F8: after damage of a history file the blocks are written again, and after a newest snapshot whose state is damaged the next ones
// follow the one before it.
func TestSnapshotsAfterDamageLineUp(t *testing.T) {
	disk := vfstest.NewMemory()
	s := openTestStore(t, disk)
	write(t, s, testState(10, 0, 3, 0))
	write(t, s, testState(20, 0, 3, 0))
	last := write(t, s, testState(30, 0, 30, 0))
	type list = []ledger.Slot
	for _, tt := range []struct {
		file    string
		offset  int64
		next    list // the snapshots that the node writes then
		history list // of the first of them
	}{
		{last.Meta.History[0].Name, headerBytes + 20, list{40, 50}, list{0, 40}},
		{last.Meta.History[1].Name, headerBytes + 20, list{40, 50}, list{0, 10, 12, 40}},
		{last.Meta.History[2].Name, headerBytes + 20, list{40, 50}, list{0, 10, 12, 20, 22, 40}},
		// Recovered from slot 20 and the log, it writes slot 30 once more.
		{last.Name, 4, list{30, 40, 50}, list{0, 10, 12, 20, 22, 30}},
		{last.Name, headerBytes + 9, list{30, 40, 50}, list{0, 10, 12, 20, 22, 30}},
	} {
		hurt := disk.Clone()
		must(t, hurt.Overwrite(path.Join(testDir, tt.file), tt.offset, []byte{9, 9, 9}))
		ledgertest.ErrorIs(t, serves(hurt, last.Info), ErrDamaged, "%s, at byte %d", tt.file, tt.offset)
		s := openTestStore(t, hurt) // another process: it has read none of the files yet
		for n, slot := range tt.next {
			st := testState(slot, 0, 30, 0)
			if got := slots(write(t, s, st).Meta.History); n == 0 && !slices.Equal(got, tt.history) {
				t.Errorf("%s, at byte %d: history %v, want %v", tt.file, tt.offset, got, tt.history)
			}
			wantLoaded(t, fmt.Sprintf("%s, at byte %d, slot %d", tt.file, tt.offset, slot), newest(t, s), 1, st)
		}
	}
}

// TestHistoryThatCannotBeReadIsLost lets a sector of a history file be bad: a start goes on without its blocks, and the next snapshot has them
// again if memory has.
func TestHistoryThatCannotBeReadIsLost(t *testing.T) {
	disk := vfstest.NewFaulty(vfstest.NewMemory(), vfstest.Plan{})
	s := openTestStore(t, disk)
	write(t, s, testState(10, 0, 3, 0))
	last := write(t, s, testState(20, 0, 3, 0))
	for n, ref := range last.Meta.History {
		disk.Arm(vfstest.Plan{Call: 1, Lasting: true, Err: syscall.EIO, Kinds: vfstest.KindReadAt, Name: ref.Name})
		s = openTestStore(t, disk)
		_, err := s.Salvage(last.Info)
		isNewest := n == len(last.Meta.History)-1
		ledgertest.Equal(t, errors.Is(err, syscall.EIO), isNewest, "%s: %v", ref.Name, err)
		ledgertest.Equal(t, slices.Equal(s.Lost(), []string{ref.Name}), !isNewest, "%s is lost", ref.Name)
		if isNewest {
			continue
		}
		ledgertest.Equal(t, slots(write(t, s, testState(30, 0, 3, 0)).Meta.History), []ledger.Slot{0, 30}, "the next history")
	}
}
