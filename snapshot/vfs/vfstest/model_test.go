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

// modelFile is a file as naively as can be: all its bytes after every change since the last sync,
// the oldest being those that were synced.
type modelFile struct {
	versions [][]byte
	cut      bool // a version is shorter than one before
}

func (f *modelFile) newest() []byte { return f.versions[len(f.versions)-1] }

func (f *modelFile) change(size int, p []byte, off int) {
	next := make([]byte, size)
	copy(next, f.newest())
	copy(next[min(off, size):], p)
	f.cut = f.cut || size < len(f.newest())
	f.versions = append(f.versions, next)
}

func (f *modelFile) sync() { f.versions, f.cut = [][]byte{f.newest()}, false }

// model is a disk of two directories, between which nothing is renamed.
type model struct {
	live, durable map[string]*modelFile
	all           map[uint64]*modelFile // by the node's id, which copies keep
}

func newModel() *model {
	return &model{map[string]*modelFile{}, map[string]*modelFile{}, map[uint64]*modelFile{}}
}

func (m *model) syncDir(dir string) {
	inDir := func(name string, _ *modelFile) bool { return path.Dir(name) == dir }
	maps.DeleteFunc(m.durable, inDir)
	for name, f := range m.live {
		if inDir(name, f) {
			m.durable[name] = f
		}
	}
}

// step does a random thing to the disk and to the model.
func (m *model) step(t *testing.T, d *Memory, r *rand.Rand) {
	dir := []string{".", "sub"}[r.IntN(2)]
	name := path.Join(dir, string(rune('a'+r.IntN(4))))
	file := m.live[name]
	if file == nil {
		f, err := d.Create(name)
		must(t, err)
		must(t, f.Close())
		m.live[name] = &modelFile{versions: [][]byte{nil}}
		m.all[d.names.get(name).id] = m.live[name]
		return
	}
	f, err := d.OpenWrite(name)
	must(t, err)
	defer f.Close()
	size := len(file.newest())
	switch action := r.IntN(20); {
	case action < 10:
		off, p := r.IntN(size+600), make([]byte, 1+r.IntN(1500))
		if r.IntN(2) == 0 {
			off = size
		}
		if r.IntN(50) == 0 {
			p = make([]byte, 3*pageBytes)
		}
		fill := byte(1 + r.IntN(255))
		for i := range p {
			p[i] = fill
		}
		_, err := f.WriteAt(p, int64(off))
		must(t, err)
		file.change(max(size, off+len(p)), p, off)
	case action == 10:
		size := r.IntN(size + 700)
		must(t, f.Truncate(int64(size)))
		file.change(size, nil, 0)
	case action == 11:
		ahead := r.IntN(3 * pageBytes)
		must(t, f.Preallocate(int64(ahead)))
		file.change(max(size, ahead), nil, 0)
	case action < 15:
		must(t, f.Sync())
		file.sync()
	case action == 15:
		must(t, d.Remove(name))
		delete(m.live, name)
	case action == 16:
		to := path.Join(dir, string(rune('a'+r.IntN(4))))
		must(t, d.Rename(name, to))
		delete(m.live, name)
		m.live[to] = file
	default:
		must(t, d.SyncDir(dir))
		m.syncDir(dir)
	}
}

// expect compares a disk with files of the model.
func expect(m *Memory, want map[string]*modelFile, bytesOf func(*modelFile) []byte) error {
	if got, names := m.Paths(), slices.Sorted(maps.Keys(want)); !slices.Equal(got, names) {
		return fmt.Errorf("the disk has files %q, want %q", got, names)
	}
	for name, f := range want {
		got, err := m.ReadFile(name)
		if err != nil {
			return err
		}
		if want := bytesOf(f); !bytes.Equal(got, want) {
			return fmt.Errorf("%s holds %d bytes, want %d, or they differ", name, len(got), len(want))
		}
	}
	return nil
}

// explain says why bytes cannot be what a crash left of a file.
func (f *modelFile) explain(got []byte) error {
	sized := func(v []byte) bool { return len(v) == len(got) }
	if !slices.ContainsFunc(f.versions, sized) {
		return fmt.Errorf("it has %d bytes, as it never had", len(got))
	}
	// Zeros that a cut left stand within a sector beside bytes of any version.
	unit := sectorBytes
	if f.cut {
		unit = 1
	}
	for at := 0; at < len(got); at += unit {
		end := min(at+unit, len(got))
		if !slices.ContainsFunc(f.versions, func(v []byte) bool { return bytes.Equal(got[at:end], padded(v, at, end)) }) {
			return fmt.Errorf("it has bytes %d to %d as it never had them", at, end)
		}
	}
	return nil
}

// padded returns v[at:end], with zeros after the end of v.
func padded(v []byte, at, end int) []byte {
	p := make([]byte, end-at)
	if at < len(v) {
		copy(p, v[at:])
	}
	return p
}

// TestMemoryIsLikeTheModel does random things to a Memory and to a model, and compares what is
// read, and what crashes of all shares leave. Now and then it goes on with a copy.
func TestMemoryIsLikeTheModel(t *testing.T) {
	for seed := range uint64(50) {
		if err := runModel(t, seed); err != nil {
			t.Errorf("seed %d: %v", seed, err)
		}
	}
}

func runModel(t *testing.T, seed uint64) error {
	r := rand.New(rand.NewPCG(seed, 0))
	m, naive := NewMemory(), newModel()
	must(t, m.MkdirAll("sub"))
	older, olderWant := m.Clone(), map[string][]byte{}
	for i := range 300 {
		naive.step(t, m, r)
		if i%10 != 0 {
			continue
		}
		if err := checkCrashes(m, naive, seed+uint64(i)); err != nil {
			return fmt.Errorf("step %d: %w", i, err)
		}
		switch r.IntN(20) {
		case 0:
			m = m.Clone()
		case 1:
			m = m.Crash(0, 0)
			for _, f := range naive.all {
				f.versions, f.cut = f.versions[:1], false
			}
			naive.live = maps.Clone(naive.durable)
		case 2:
			for name, want := range olderWant {
				if got, err := older.ReadFile(name); err != nil || !bytes.Equal(got, want) {
					return fmt.Errorf("step %d: an older copy changed", i)
				}
			}
			older = m.Clone()
			olderWant = map[string][]byte{}
			for name, f := range naive.live {
				olderWant[name] = f.newest()
			}
		}
	}
	return nil
}

func checkCrashes(m *Memory, naive *model, seed uint64) error {
	newest := (*modelFile).newest
	synced := func(f *modelFile) []byte { return f.versions[0] }
	if err := expect(m, naive.live, newest); err != nil {
		return err
	}
	if err := expect(m.Clone(), naive.live, newest); err != nil {
		return fmt.Errorf("clone: %w", err)
	}
	if err := expect(m.Crash(1, seed), naive.live, newest); err != nil {
		return fmt.Errorf("crash that keeps all: %w", err)
	}
	for _, copied := range []*Memory{m.Crash(0, seed), m.Clone().Crash(0, seed), m.Crash(0.5, seed)} {
		if err := copied.Crash(0, seed).same(copied); err != nil {
			return fmt.Errorf("crash of a crash: %w", err)
		}
	}
	if err := expect(m.Crash(0, seed), naive.durable, synced); err != nil {
		return fmt.Errorf("crash that keeps nothing: %w", err)
	}
	half := m.Crash(0.5, seed)
	if err := half.same(m.Clone().Crash(0.5, seed)); err != nil {
		return fmt.Errorf("the same crash twice: %w", err)
	}
	for _, name := range half.Paths() {
		got, err := half.ReadFile(name)
		if err != nil {
			return err
		}
		f := naive.all[half.names.get(name).id]
		if err := f.explain(got); err != nil {
			return fmt.Errorf("crash that keeps half, %s: %w", name, err)
		}
	}
	return nil
}

// same says how two disks differ in what is read.
func (m *Memory) same(other *Memory) error {
	if got, want := m.Paths(), other.Paths(); !slices.Equal(got, want) {
		return fmt.Errorf("one disk has files %q, the other %q", got, want)
	}
	for _, name := range m.Paths() {
		got, _ := m.ReadFile(name)
		want, _ := other.ReadFile(name)
		if !bytes.Equal(got, want) {
			return fmt.Errorf("%s has %d bytes on one disk and %d on the other, or they differ", name, len(got), len(want))
		}
	}
	if got, want := m.UsedBytes(), other.UsedBytes(); got != want {
		return fmt.Errorf("one disk uses %d bytes, the other %d", got, want)
	}
	return nil
}
