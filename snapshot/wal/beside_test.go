package wal

import (
	"errors"
	"slices"
	"testing"

	"ledgerd/snapshot/vfs/vfstest"
)

// TestReplayBesideTellsDamageOfALogThatGrows: what is said of the damage changes from look to look, the place of it
// does not.
func TestReplayBesideTellsDamageOfALogThatGrows(t *testing.T) {
	memory := recorded(t, script(12, 2), 64<<10, true)
	entries := entriesOf(t, memory)
	name := segmentName(testDir, 1)
	put(t, memory, name, contents(t, memory, name)[:entries[5].Offset])
	mark, err := readNewest(memory, testDir)
	must(t, err)
	looks := 0
	disk := vfstest.NewFaulty(memory, vfstest.Plan{Before: func(c vfstest.Call) {
		if c.Kind != vfstest.KindList || looks > 10 {
			return
		}
		looks++
		mark.durable += 8
		if err := memory.WriteFile(testDir+"/"+newestName, mark.encode()); err != nil {
			t.Error(err)
		}
	}})
	_, err = ReplayBeside(t.Context(), disk, testDir, 0, func([]Entry) error { return nil })
	if !errors.Is(err, ErrCorrupt) || looks != 2 {
		t.Errorf("after %d looks: %v, want damage after two", looks, err)
	}
}

// TestReplayBesideAWriterThatEndsItsSegment cuts the zeros that were preallocated each time the size was read.
func TestReplayBesideAWriterThatEndsItsSegment(t *testing.T) {
	memory := recorded(t, script(12, 2), 64<<10, true)
	entries := entriesOf(t, memory)
	name := segmentName(testDir, 1)
	ended := contents(t, memory, name)
	disk := vfstest.NewFaulty(memory, vfstest.Plan{Before: func(c vfstest.Call) {
		switch {
		case c.Kind == vfstest.KindList:
			put(t, memory, name, append(slices.Clone(ended), make([]byte, 64<<10)...))
		case c.Kind == vfstest.KindReadAt && c.Name == name:
			put(t, memory, name, ended)
		}
	}})
	visited := 0
	if _, err := ReplayBeside(t.Context(), disk, testDir, 0, func(commit []Entry) error {
		visited += len(commit)
		return nil
	}); err != nil || visited != len(entries) {
		t.Errorf("%d of %d records are read: %v", visited, len(entries), err)
	}
}

// TestReplayBesideTellsErrorsWithoutAPlaceApart: at each look another thing is wrong that says no place, and at the third
// nothing.
func TestReplayBesideTellsErrorsWithoutAPlaceApart(t *testing.T) {
	commits := script(12, 2)
	memory := recorded(t, commits, 3<<10, true)
	newestFile, first := testDir+"/"+newestName, segmentName(testDir, 1)
	whole, segment := contents(t, memory, newestFile), contents(t, memory, first)
	looks := 0
	disk := vfstest.NewFaulty(memory, vfstest.Plan{Before: func(c vfstest.Call) {
		if c.Kind != vfstest.KindList {
			return
		}
		put(t, memory, newestFile, whole)
		put(t, memory, first, segment)
		switch looks++; looks {
		case 1: // a format of the future
			put(t, memory, newestFile, slices.Replace(slices.Clone(whole), 8, 9, 9))
		case 2: // the first record is missing
			_ = memory.Remove(first)
		}
	}})
	visited := 0
	_, err := ReplayBeside(t.Context(), disk, testDir, 1, func([]Entry) error { visited++; return nil })
	if err != nil || visited != len(commits) {
		t.Errorf("after %d looks: %d commits of %d, %v", looks, visited, len(commits), err)
	}
}
