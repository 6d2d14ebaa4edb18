package wal

import (
	"errors"
	"slices"
	"testing"

	"ledgerd/snapshot/vfs/vfstest"
)

// TestReplayBesideAWriter has a writer change files before each look at the log, or before each read of its first segment.
func TestReplayBesideAWriter(t *testing.T) {
	commits := script(12, 2)
	whole, many := recorded(t, commits, 64<<10, true), recorded(t, commits, 3<<10, true)
	newestFile, first := testDir+"/"+newestName, segmentName(testDir, 1)
	short := whole.Clone()
	put(t, short, first, contents(t, whole, first)[:entriesOf(t, whole)[5].Offset])
	mark, err := readNewest(whole, testDir)
	must(t, err)
	for name, tt := range map[string]struct {
		disk    *vfstest.Memory
		look    func(disk *vfstest.Memory, n int)
		read    func(disk *vfstest.Memory)
		looks   int
		refused bool
	}{
		// What is said of the damage changes from look to look, the place of it does not.
		"damage of a log that grows": {disk: short, looks: 2, refused: true, look: func(disk *vfstest.Memory, n int) {
			mark.durable += 8
			put(t, disk, newestFile, mark.encode())
		}},
		// The zeros that were preallocated are cut each time the size was read.
		"a segment that ends": {disk: whole, looks: 1, look: func(disk *vfstest.Memory, n int) {
			put(t, disk, first, append(contents(t, whole, first), make([]byte, 64<<10)...))
		}, read: func(disk *vfstest.Memory) { put(t, disk, first, contents(t, whole, first)) }},
		// At each look another thing is wrong that says no place, and at the third nothing.
		"errors without a place": {disk: many, looks: 3, look: func(disk *vfstest.Memory, n int) {
			put(t, disk, newestFile, contents(t, many, newestFile))
			put(t, disk, first, contents(t, many, first))
			switch n {
			case 1: // a format of the future
				put(t, disk, newestFile, slices.Replace(contents(t, many, newestFile), 8, 9, 9))
			case 2: // the first record is missing
				must(t, disk.Remove(first))
			}
		}},
	} {
		disk, looks, visited := tt.disk.Clone(), 0, 0
		beside := vfstest.NewFaulty(disk, vfstest.Plan{Before: func(c vfstest.Call) {
			switch {
			case c.Kind == vfstest.KindList && looks < 10:
				looks++
				tt.look(disk, looks)
			case c.Kind == vfstest.KindReadAt && c.Name == first && tt.read != nil:
				tt.read(disk)
			}
		}})
		_, err := ReplayBeside(t.Context(), beside, testDir, 1, func([]Entry) error { visited++; return nil })
		if errors.Is(err, ErrCorrupt) != tt.refused || !tt.refused && (err != nil || visited != len(commits)) || looks != tt.looks {
			t.Errorf("%s: after %d looks %d commits of %d, %v", name, looks, visited, len(commits), err)
		}
	}
}
