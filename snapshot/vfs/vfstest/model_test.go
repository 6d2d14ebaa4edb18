package vfstest

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"path"
	"slices"
	"testing"
)

// watcher notes of a disk what a crash may leave, as naively as can be. Nothing is renamed between its directories.
type watcher struct {
	versions map[uint64][][]byte // of each file all bytes it had since the last sync, by its id, which copies keep
	cut      map[uint64]bool     // a version is shorter than one before
	kept     map[string]uint64   // the files of each directory when that was synced
}

func (m *Memory) id(name string) uint64 {
	_, n, _ := m.findLocked(name)
	return n.id
}

// watch notes what a step did.
func (w *watcher) watch(d *driver, s step) {
	m := d.disk.(*Memory)
	note := func(_ string, n *node) {
		got := make([]byte, n.live.size)
		n.live.readAt(got, 0)
		if w.versions[n.id] == nil {
			w.versions[n.id] = [][]byte{{}}
		}
		if newest := w.versions[n.id][len(w.versions[n.id])-1]; !bytes.Equal(got, newest) {
			w.versions[n.id] = append(w.versions[n.id], got)
			w.cut[n.id] = w.cut[n.id] || len(got) < len(newest)
		}
	}
	m.root.files("", note)
	for i, f := range d.files {
		if f == nil {
			continue
		}
		n := f.(*memoryFile).node
		note("", n) // it may have no name
		if s.action == "sync" && s.file == i && !d.closed[i] {
			w.versions[n.id], w.cut[n.id] = w.versions[n.id][len(w.versions[n.id])-1:], false
		}
	}
	if s.action == "sync dir" {
		maps.DeleteFunc(w.kept, func(name string, _ uint64) bool { return path.Dir(name) == s.name })
		for _, name := range m.Paths() {
			if path.Dir(name) == s.name {
				w.kept[name] = m.id(name)
			}
		}
	}
}

// explain says why bytes cannot be what a crash left of a file.
func (w *watcher) explain(id uint64, got []byte) error {
	versions := w.versions[id]
	if !slices.ContainsFunc(versions, func(v []byte) bool { return len(v) == len(got) }) {
		return fmt.Errorf("it has %d bytes, as it never had", len(got))
	}
	// Zeros that a cut left stand within a sector beside bytes of any version.
	unit := sectorBytes
	if w.cut[id] {
		unit = 1
	}
	for at := 0; at < len(got); at += unit {
		end := min(at+unit, len(got))
		if !slices.ContainsFunc(versions, func(v []byte) bool { return bytes.Equal(got[at:end], padded(v, end)[at:]) }) {
			return fmt.Errorf("it has bytes %d to %d as it never had them", at, end)
		}
	}
	return nil
}

// padded returns so many bytes of v, with zeros after its end.
func padded(v []byte, size int) []byte {
	p := make([]byte, size)
	copy(p, v)
	return p
}

// check compares what crashes leave with what they may leave.
func (w *watcher) check(t *testing.T, m *Memory, seed uint64) error {
	for what, same := range map[string][2]*Memory{
		"a clone":                  {m, m.Clone()},
		"a crash that keeps all":   {m, m.Crash(1, seed)},
		"the same crash of both":   {m.Crash(0.5, seed), m.Clone().Crash(0.5, seed)},
		"a crash of what one left": {m.Crash(0.5, seed), m.Crash(0.5, seed).Crash(0, seed)},
		"a crash of a clone":       {m.Crash(0, seed), m.Clone().Crash(0, seed)},
	} {
		if holds(t, same[0], ".") != holds(t, same[1], ".") || same[0].UsedBytes() != same[1].UsedBytes() {
			return fmt.Errorf("%s is not like the disk", what)
		}
	}
	least := m.Crash(0, seed)
	if got, want := least.Paths(), slices.Sorted(maps.Keys(w.kept)); !slices.Equal(got, want) {
		return fmt.Errorf("a crash that keeps nothing leaves files %q, want %q", got, want)
	}
	for name, id := range w.kept {
		if got := contentOf(t, least, name); got != string(w.versions[id][0]) {
			return fmt.Errorf("a crash that keeps nothing leaves %d bytes of %s, want %d, or they differ", len(got), name, len(w.versions[id][0]))
		}
	}
	half := m.Crash(0.5, seed)
	for _, name := range half.Paths() {
		got := []byte(contentOf(t, half, name))
		if err := w.explain(half.id(name), got); err != nil {
			return fmt.Errorf("a crash that keeps half, %s: %w", name, err)
		}
		// What survived after the size that survived must not come back.
		used := half.UsedBytes()
		f, err := half.OpenWrite(name)
		must(t, err)
		must(t, f.Truncate(8*pageBytes))
		if contentOf(t, half, name) != string(padded(got, 8*pageBytes)) || half.UsedBytes() > used {
			return fmt.Errorf("a crash that keeps half, %s: made longer it does not go on with zeros", name)
		}
	}
	return nil
}

// TestCrashesLeaveWhatTheyMay does random things to a disk and compares what crashes of all shares leave. Now and
// then it goes on with a copy.
func TestCrashesLeaveWhatTheyMay(t *testing.T) {
	names := map[string][]string{".": {".", "a", "b", "c"}, "sub": {"sub", "sub/a", "sub/b", "sub/c"}}
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 0))
		m := NewMemory()
		must(t, m.MkdirAll("sub"))
		d := &driver{disk: m}
		w := &watcher{versions: map[uint64][][]byte{}, cut: map[uint64]bool{}, kept: map[string]uint64{}}
		older := m.Clone()
		olderHolds := holds(t, older, ".")
		for i := range 300 {
			dir := []string{".", "sub"}[r.IntN(2)]
			s := randomStep(r, names[dir])
			if s.action == "sync dir" {
				s.name = dir
			}
			if s.action == "mkdir" || (s.action == "rename" || s.action == "remove") && (s.name == dir || s.to == dir) {
				continue // these change directories
			}
			d.do(s)
			w.watch(d, s)
			if i%10 != 0 {
				continue
			}
			if err := w.check(t, m, seed+uint64(i)); err != nil {
				t.Fatalf("seed %d, step %d: %v", seed, i, err)
			}
			if got := holds(t, older, "."); got != olderHolds {
				t.Fatalf("seed %d, step %d: an older copy changed", seed, i)
			}
			switch r.IntN(20) {
			case 0:
				m = m.Clone()
				d = &driver{disk: m}
			case 1:
				m = m.Crash(0, 0)
				d = &driver{disk: m}
				for id, v := range w.versions {
					w.versions[id], w.cut[id] = v[:1], false
				}
			case 2:
				older = m.Clone()
				olderHolds = holds(t, older, ".")
			}
		}
	}
}
