package wal

import (
	"errors"
	"slices"
	"testing"

	"ledgerd/engine/ledger"
	"ledgerd/snapshot/vfs/vfstest"
)

// TestReadingBesideAWriter has a writer change files before each look at the log, or before each read of its first segment.
func TestReadingBesideAWriter(t *testing.T) {
	commits := script(12, 2)
	whole, many := recorded(t, commits, 64<<10, true), recorded(t, commits, 3<<10, true)
	newestFile, first := testDir+"/"+newestName, segmentName(testDir, 1)
	short := whole.Clone()
	put(t, short, first, contents(t, whole, first)[:entriesOf(t, whole)[5].Offset])
	content, err := readNewest(whole, testDir)
	must(t, err)
	for name, tt := range map[string]struct {
		disk    *vfstest.Memory
		look    func(disk *vfstest.Memory, n int)
		read    func(disk *vfstest.Memory)
		looks   int
		refused bool
	}{
		// What is said of the damage changes from look to look.
		"damage of a log that grows": {disk: short, looks: maxAttempts, refused: true, look: func(disk *vfstest.Memory, n int) {
			content.durable += 8
			put(t, disk, newestFile, content.encode())
		}},
		// The zeros that were preallocated are cut each time the size was read.
		"a segment that ends": {disk: whole, looks: 1, look: func(disk *vfstest.Memory, n int) {
			put(t, disk, first, append(contents(t, whole, first), make([]byte, 64<<10)...))
		}, read: func(disk *vfstest.Memory) { put(t, disk, first, contents(t, whole, first)) }},
		// At each look there is one more commit before it.
		"damage that recedes": {disk: whole, looks: len(commits), look: func(disk *vfstest.Memory, n int) {
			content := slices.Clone(contents(t, whole, first))
			if all := entriesOf(t, whole); n < len(commits) {
				content[all[n*len(all)/len(commits)].Offset] ^= 1
			}
			put(t, disk, first, content)
		}},
		// At each look another thing is wrong, and at the third nothing.
		"errors that pass": {disk: many, looks: 3, look: func(disk *vfstest.Memory, n int) {
			put(t, disk, newestFile, contents(t, many, newestFile))
			put(t, disk, first, contents(t, many, first))
			switch n {
			case 1: // a format of the future
				put(t, disk, newestFile, slices.Replace(contents(t, many, newestFile), 8, 13, 9, 0, 0, 0, 9))
			case 2: // the first record is missing
				must(t, disk.Remove(first))
			}
		}},
	} {
		disk, looks, visited := tt.disk.Clone(), 0, 0
		beside := vfstest.NewFaulty(disk, vfstest.Plan{Before: func(c vfstest.Call) {
			switch {
			case c.Kind == vfstest.KindList && looks < 20:
				looks++
				tt.look(disk, looks)
			case c.Kind == vfstest.KindReadAt && c.Name == first && tt.read != nil:
				tt.read(disk)
			}
		}})
		_, err := NewReader(beside, testDir, 1).Read(t.Context(), func([]Entry) error { visited++; return nil })
		if errors.Is(err, ErrCorrupt) != tt.refused || !tt.refused && (err != nil || visited != len(commits)) || looks != tt.looks {
			t.Errorf("%s: after %d looks %d commits of %d, %v", name, looks, visited, len(commits), err)
		}
	}
}

// TestALogReadInPiecesIsReadOnce also while it grows, and while what was read is pruned.
func TestALogReadInPiecesIsReadOnce(t *testing.T) {
	const pieceBytes = 8 * readerBytes
	disk := vfstest.NewFaulty(vfstest.NewMemory(), vfstest.Plan{})
	c := config(disk)
	c.SegmentBytes = 16 * readerBytes
	l, _ := open(t, c)
	var commits, got [][]*ledger.Record
	write := func(n int) {
		for range n {
			commits = append(commits, commitOf(ledger.Version(len(commits)+1), 1, 100))
		}
		commitAll(t, l, commits[len(commits)-n:])
	}
	write(1200)
	disk.Arm(vfstest.Plan{}) // it counts from here on
	enough := errors.New("enough of a piece")
	r, pieces, visit := NewReader(disk, testDir, 1), int64(0), collect(&got)
	for err := enough; errors.Is(err, enough); pieces++ {
		piece := 0
		_, err = r.Read(t.Context(), func(commit []Entry) error {
			if piece += commit[0].SizeBytes; piece > pieceBytes {
				return errors.Join(visit(commit), enough)
			}
			return visit(commit)
		})
		if err != nil && !errors.Is(err, enough) {
			t.Fatal(err)
		}
		if pieces == 1 {
			must(t, l.Prune(got[len(got)-1][0].Version))
			write(40)
		}
	}
	wantCommits(t, "in pieces", got, commits)
	calls := map[vfstest.Kind]int64{}
	for _, c := range disk.Trace() {
		calls[c.Kind]++
	}
	segments, bytes := int64(l.newestLocked().index), int64(l.Stats().Position)
	if opened := calls[vfstest.KindOpen]; opened > 2*segments+4*pieces {
		t.Errorf("%d files opened for %d segments in %d pieces", opened, segments, pieces)
	}
	// The room of the newest segment is looked through, in smaller steps.
	if reads := calls[vfstest.KindReadAt]; reads > (bytes+bytes/5)/readerBytes+c.SegmentBytes/(64<<10)+2*segments+4*pieces {
		t.Errorf("%d reads of %d bytes in %d pieces", reads, bytes, pieces)
	}
	must(t, l.Close())
}
