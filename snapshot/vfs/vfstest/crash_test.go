package vfstest

import (
	"bytes"
	"slices"
	"strings"
	"testing"
)

// shares are what every test of a crash that holds for any share is run with.
var shares = []float64{0, 0.25, 0.5, 0.75, 1}

// outcomes returns what a disk is seen to hold after many crashes, each as "name=bytes name=bytes".
func outcomes(t *testing.T, m *Memory, share float64) map[string]int {
	seen := map[string]int{}
	for seed := range uint64(400) {
		copied := m.Crash(share, seed)
		var files []string
		for _, name := range copied.Paths() {
			files = append(files, name+"="+contentOf(t, copied, name))
		}
		seen[strings.Join(files, " ")]++
	}
	return seen
}

func TestNameChangesSurviveWholeOrNot(t *testing.T) {
	tests := map[string]struct {
		change func(*testing.T, *Memory)
		want   []string // all outcomes, each of which must come up
	}{
		"create": {func(t *testing.T, m *Memory) {
			must(t, written(t, m, "new", "N").Sync())
		}, []string{"d/c=C a=A b=B", "d/c=C a=A b=B new=N"}},
		"lock": {func(t *testing.T, m *Memory) {
			_, err := m.Lock("LOCK")
			must(t, err)
		}, []string{"a=A b=B d/c=C", "LOCK= a=A b=B d/c=C"}},
		"remove": {func(t *testing.T, m *Memory) {
			must(t, m.Remove("a"))
		}, []string{"a=A b=B d/c=C", "b=B d/c=C"}},
		"rename": {func(t *testing.T, m *Memory) {
			must(t, m.Rename("a", "new"))
		}, []string{"a=A b=B d/c=C", "b=B new=A d/c=C"}},
		"rename over another": {func(t *testing.T, m *Memory) {
			must(t, m.Rename("a", "b"))
		}, []string{"a=A b=B d/c=C", "b=A d/c=C"}},
		"rename to another directory": {func(t *testing.T, m *Memory) {
			must(t, m.Rename("a", "d/a"))
		}, []string{"a=A b=B d/c=C", "b=B d/a=A d/c=C"}},
		"rename there and back": {func(t *testing.T, m *Memory) {
			must(t, m.Rename("a", "x"))
			must(t, m.Rename("x", "a"))
		}, []string{"a=A b=B d/c=C", "b=B d/c=C x=A"}},
		"swap": {func(t *testing.T, m *Memory) {
			must(t, m.Rename("a", "x"))
			must(t, m.Rename("b", "a"))
			must(t, m.Rename("x", "b"))
		}, []string{"a=A b=B d/c=C", "b=B d/c=C x=A", "a=B d/c=C x=A", "a=B b=A d/c=C"}},
		"create in the place of a renamed file": {func(t *testing.T, m *Memory) {
			must(t, m.Rename("a", "old"))
			must(t, written(t, m, "a", "new").Sync())
		}, []string{"a=A b=B d/c=C", "b=B d/c=C old=A", "a=new b=B d/c=C old=A"}},
		"two of the same directory": {func(t *testing.T, m *Memory) {
			must(t, m.Remove("a"))
			must(t, m.Remove("b"))
		}, []string{"a=A b=B d/c=C", "a=A d/c=C", "b=B d/c=C", "d/c=C"}},
		"two of two directories": {func(t *testing.T, m *Memory) {
			must(t, m.Remove("a"))
			must(t, m.Remove("d/c"))
		}, []string{"a=A b=B d/c=C", "a=A b=B", "b=B d/c=C", "b=B"}},
		"create, and rename over another": {func(t *testing.T, m *Memory) {
			must(t, written(t, m, "tmp", "N").Sync())
			must(t, m.Rename("tmp", "a"))
		}, []string{"a=A b=B d/c=C", "a=A b=B d/c=C tmp=N", "a=N b=B d/c=C"}},
		"rename to another directory, and sync that": {func(t *testing.T, m *Memory) {
			must(t, m.Rename("a", "x"))
			must(t, m.Rename("x", "d/x"))
			must(t, m.Remove("b"))
			must(t, m.SyncDir("d"))
		}, []string{"b=B d/c=C d/x=A", "d/c=C d/x=A"}},
		"rename a directory": {func(t *testing.T, m *Memory) {
			must(t, m.Rename("d", "e"))
		}, []string{"a=A b=B d/c=C", "a=A b=B e/c=C"}},
		"rename a directory after a file in it": {func(t *testing.T, m *Memory) {
			must(t, m.Rename("d/c", "d/x"))
			must(t, m.Rename("d", "e"))
		}, []string{"a=A b=B d/c=C", "a=A b=B d/x=C", "a=A b=B e/c=C", "a=A b=B e/x=C"}},
		"rename a directory, and sync that": {func(t *testing.T, m *Memory) {
			must(t, m.Rename("d/c", "d/x"))
			must(t, m.Rename("d", "e"))
			must(t, m.SyncDir("."))
		}, []string{"a=A b=B e/c=C", "a=A b=B e/x=C"}},
		"rename a directory, and then a file in it": {func(t *testing.T, m *Memory) {
			must(t, m.Rename("d", "e"))
			must(t, m.Rename("e/c", "e/x"))
		}, []string{"a=A b=B d/c=C", "a=A b=B e/c=C", "a=A b=B e/x=C"}},
		"rename a directory, and make another in its place": {func(t *testing.T, m *Memory) {
			must(t, m.Rename("d", "e"))
			must(t, m.MkdirAll("d"))
			must(t, m.Remove("a"))
		}, []string{"a=A b=B e/c=C", "b=B e/c=C"}},
		"remove a directory": {func(t *testing.T, m *Memory) {
			must(t, m.Remove("d/c"))
			must(t, m.Remove("d"))
		}, []string{"a=A b=B d/c=C", "a=A b=B"}},
		"rename a directory in place of another": {func(t *testing.T, m *Memory) {
			must(t, m.MkdirAll("e"))
			must(t, m.WriteFile("e/x", []byte("X")))
			must(t, m.Remove("d/c"))
			must(t, m.Remove("d"))
			must(t, m.Rename("e", "d"))
		}, []string{"a=A b=B d/c=C e/x=X", "a=A b=B e/x=X", "a=A b=B d/x=X"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			m := NewMemory()
			must(t, m.MkdirAll("d"))
			for name, text := range map[string]string{"a": "A", "b": "B", "d/c": "C"} {
				must(t, m.WriteFile(name, []byte(text)))
			}
			tt.change(t, m)
			expectOutcomes(t, m, tt.want)
		})
	}
}

// expectOutcomes checks that crashes leave all of these and nothing else.
func expectOutcomes(t *testing.T, m *Memory, outcomesWanted []string) {
	t.Helper()
	want := map[string]bool{}
	for _, files := range outcomesWanted {
		want[sortedWords(files)] = true
	}
	seen := outcomes(t, m, 0.5)
	for files, times := range seen {
		if !want[files] {
			t.Errorf("%d crashes of 400 left %q, which must not be", times, files)
		}
	}
	for files := range want {
		if seen[files] == 0 {
			t.Errorf("no crash of 400 left %q", files)
		}
	}
}

func sortedWords(text string) string {
	words := strings.Fields(text)
	slices.Sort(words)
	return strings.Join(words, " ")
}

func TestSectorsSurviveEachForItself(t *testing.T) {
	m := NewMemory()
	must(t, m.WriteFile("file", bytes.Repeat([]byte("0"), 8*sectorBytes)))
	f, err := m.OpenWrite("file")
	must(t, err)
	_, err = f.WriteAt(bytes.Repeat([]byte("1"), 8*sectorBytes), 0)
	must(t, err)
	torn, skipping := 0, 0
	for seed := range uint64(100) {
		p, err := m.Crash(0.5, seed).ReadFile("file")
		must(t, err)
		kept := ""
		for sector := range slices.Chunk(p, sectorBytes) {
			if got := strings.Count(string(sector), string(sector[:1])); got != sectorBytes {
				t.Fatalf("seed %d: a sector is torn: %q", seed, sector)
			}
			kept += string(sector[:1])
		}
		if strings.Contains(kept, "10") {
			torn++
		}
		if strings.Contains(kept, "01") {
			skipping++
		}
	}
	if torn < 50 || skipping < 50 {
		t.Errorf("of 100 crashes %d tore the write and %d kept a sector without the one before, want most", torn, skipping)
	}
}

func TestSizeAndBytesSurviveEachForItself(t *testing.T) {
	m := NewMemory()
	must(t, m.WriteFile("file", []byte("old")))
	f, err := m.OpenWrite("file")
	must(t, err)
	_, err = f.WriteAt([]byte("new"), 3)
	must(t, err)
	_, err = f.WriteAt([]byte("!"), 6)
	must(t, err)
	want := []string{
		"old", "oldnew", "oldnew!", // all bytes that have room
		"old\x00\x00\x00", "old\x00\x00\x00\x00", "oldnew\x00", // bytes that were lost
	}
	for _, text := range want {
		if outcomes(t, m, 0.5)["file="+text] == 0 {
			t.Errorf("no crash of 400 left %q", text)
		}
	}
	if got := outcomes(t, m, 0.5); len(got) != len(want) {
		t.Errorf("crashes left %v, want only %q", got, want)
	}
}

// TestLostBytesStayLost makes files longer after a crash: what survived after the size that
// survived must not come back.
func TestLostBytesStayLost(t *testing.T) {
	m := NewMemory()
	must(t, m.WriteFile("file", []byte("old")))
	f, err := m.OpenWrite("file")
	must(t, err)
	_, err = f.WriteAt(bytes.Repeat([]byte("n"), 3*pageBytes), 3)
	must(t, err)
	for seed := range uint64(50) {
		copied := m.Crash(0.5, seed)
		before, err := copied.ReadFile("file")
		must(t, err)
		f, err := copied.OpenWrite("file")
		must(t, err)
		must(t, f.Truncate(4*pageBytes))
		after, err := copied.ReadFile("file")
		must(t, err)
		if want := padded(before, 0, 4*pageBytes); !bytes.Equal(after, want) {
			t.Errorf("seed %d: a file of %d bytes made longer does not go on with zeros", seed, len(before))
		}
		if got := copied.UsedBytes(); got > int64(pagesFor(int64(len(before)))*pageBytes) {
			t.Errorf("seed %d: a file of %d bytes takes %d", seed, len(before), got)
		}
	}
}

func TestCutsSurviveOrNot(t *testing.T) {
	m := NewMemory()
	must(t, m.WriteFile("file", []byte("0123456789")))
	f, err := m.OpenWrite("file")
	must(t, err)
	must(t, f.Truncate(4))
	must(t, f.Truncate(8))
	got := outcomes(t, m, 0.5)
	want := []string{"0123456789", "0123", "0123\x00\x00\x00\x00"}
	for _, text := range want {
		if got["file="+text] == 0 {
			t.Errorf("no crash of 400 left %q", text)
		}
	}
	if len(got) != len(want) {
		t.Errorf("crashes left %v, want only %q", got, want)
	}
}

func TestCopiesAreIndependent(t *testing.T) {
	m := NewMemory()
	f := written(t, m, "file", "before")
	must(t, f.Sync())
	must(t, m.SyncDir("."))
	_, err := m.Lock("file")
	must(t, err)
	for name, copied := range map[string]*Memory{"crash": m.Crash(1, 1), "clone": m.Clone()} {
		_, err = f.WriteAt([]byte("behind"), 0)
		must(t, err)
		if got := contentOf(t, copied, "file"); got != "before" {
			t.Errorf("%s: a file open on the disk wrote to its copy: %q", name, got)
		}
		if _, err := copied.Lock("file"); err != nil {
			t.Errorf("%s: a lock of the disk is held on the copy: %v", name, err)
		}
		must(t, copied.Overwrite("file", 0, []byte("aside!")))
		must(t, copied.Rename("file", "renamed"))
		if got := contentOf(t, m, "file"); got != "behind" {
			t.Errorf("%s: a write to the copy changed the disk: %q", name, got)
		}
		_, err = f.WriteAt([]byte("before"), 0)
		must(t, err)
	}
}
