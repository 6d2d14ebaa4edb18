package snapshot

import (
	"path"
	"slices"
	"strings"
	"testing"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/ledgertest"
	"ledgerd/snapshot/vfs/vfstest"
)

func TestPrune(t *testing.T) {
	disk := vfstest.NewMemory()
	s := openTestStore(t, disk)
	var names []string
	for _, step := range []struct{ slot, floor ledger.Slot }{{10, 0}, {20, 0}, {30, 12}, {40, 24}} {
		names = append(names, write(t, s, testState(step.slot, step.floor, 4, 1)).Name)
	}
	hurt := func(numbers ...int) *vfstest.Memory {
		disk := disk.Clone()
		for _, n := range numbers {
			must(t, disk.Overwrite(path.Join(testDir, names[n]), headerBytes+30, []byte{1, 2, 3}))
		}
		return disk
	}
	type list = []ledger.Slot
	for name, tt := range map[string]struct {
		disk               *vfstest.Memory
		keep               int
		oldest             ledger.Slot // 0: none
		snapshots, history list
	}{
		"two of four":               {hurt(), 2, 30, list{40, 30}, list{12, 22, 32}},
		"one of four":               {hurt(), 1, 40, list{40}, list{22, 32}},
		"all of four":               {hurt(), 4, 10, list{40, 30, 20, 10}, list{0, 12, 22, 32}},
		"too few":                   {hurt(), 5, 0, list{40, 30, 20, 10}, list{0, 12, 22, 32}},
		"newest damaged":            {hurt(3), 2, 20, list{40, 30, 20}, list{0, 12, 22, 32}},
		"one between damaged":       {hurt(2), 2, 20, list{40, 30, 20}, list{0, 12, 22, 32}},
		"the third damaged":         {hurt(1), 2, 30, list{40, 30}, list{12, 22, 32}},
		"three damaged, two wanted": {hurt(1, 2, 3), 2, 0, list{40, 30, 20, 10}, list{0, 12, 22, 32}},
	} {
		s := openTestStore(t, tt.disk)
		for range 2 { // the second time there is nothing left to do
			oldest, err := s.Prune(t.Context(), tt.keep, Pace{})
			must(t, err)
			if oldest == nil && tt.oldest != 0 || oldest != nil && oldest.Slot != tt.oldest {
				t.Errorf("%s: oldest kept %+v, want slot %d", name, oldest, tt.oldest)
			}
			var snapshots, history list
			names, err := s.names() // in their order: history before snapshots, and the oldest first
			must(t, err)
			for _, name := range names {
				if first, _, ok := parseBlocksName(historyPrefix, name); ok {
					history = append(history, first)
				} else if slot, _, ok := parseStateName(name); ok {
					snapshots = slices.Insert(snapshots, 0, slot)
				}
			}
			ledgertest.Equal(t, snapshots, tt.snapshots, "%s: the snapshots that are left", name)
			ledgertest.Equal(t, history, tt.history, "%s: where the history that is left begins", name)
		}
	}
	if _, err := s.Prune(t.Context(), 0, Pace{}); err == nil {
		t.Error("Prune(0) went through")
	}
}

func TestFilesOfOthersStay(t *testing.T) {
	disk := vfstest.NewMemory()
	foreign := []string{"README", "x.tmp", "snapshot-1-2.state", "history-a.blocks", "snapshot-.state.old",
		strings.Replace(stateName(1, 2), ".state", ".STATE", 1)}
	ours := []string{stateName(1, 2) + ".tmp", blocksName(historyPrefix, 1, 2, FileHash{}) + ".tmp"}
	for _, name := range append(foreign, ours...) {
		must(t, disk.WriteFile(path.Join(testDir, name), []byte("something")))
	}
	if infos, err := ViewStore(disk, testDir, quiet).List(); err != nil || len(infos) != 0 || len(disk.Paths()) != len(foreign)+len(ours) {
		t.Errorf("List = %v, %v, and left %v", infos, err, disk.Paths())
	}
	s := openTestStore(t, disk)
	write(t, s, testState(10, 10, 2, 0))
	kept := write(t, s, testState(20, 20, 2, 0))
	_, err := s.Prune(t.Context(), 1, Pace{})
	must(t, err)
	want := append(foreign, kept.Name, kept.Meta.History[0].Name)
	slices.Sort(want)
	if names, err := disk.List(testDir); err != nil || !slices.Equal(names, want) {
		t.Errorf("left: %v, %v, want %v", names, err, want)
	}
}
