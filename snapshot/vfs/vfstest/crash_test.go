package vfstest

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"ledgerd/snapshot/vfs"
)

// outcomes returns what a disk is seen to hold after many crashes, each as "name=bytes name=bytes".
func outcomes(t *testing.T, m *Memory, share float64) map[string]int {
	seen := map[string]int{}
	for seed := range uint64(400) {
		copied := m.Crash(share, seed)
		var files []string
		for _, name := range copied.Paths() {
			text := contentOf(t, copied, name)
			for _, c := range "012" {
				text = strings.ReplaceAll(text, strings.Repeat(string(c), sectorBytes), string(c))
			}
			files = append(files, name+"="+text)
		}
		seen[strings.Join(files, " ")]++
	}
	return seen
}

// onlyA returns outcomes of the test below in which the file a holds each of these.
func onlyA(contents ...string) (outcomes []string) {
	for _, content := range contents {
		outcomes = append(outcomes, "a="+content+" b=B d/c=C")
	}
	return outcomes
}

// sectors returns so many sectors of one byte each, which outcomes tells as the bytes alone.
func sectors(text string) (p []byte) {
	for _, c := range []byte(text) {
		p = append(p, bytes.Repeat([]byte{c}, sectorBytes)...)
	}
	return p
}

func TestACrashLeavesAnyOfWhatItMay(t *testing.T) {
	write := func(t *testing.T, m *Memory, off int64, p []byte) vfs.File {
		f, err := m.OpenWrite("a")
		must(t, err)
		_, err = f.WriteAt(p, off)
		must(t, err)
		return f
	}
	tests := map[string]struct {
		change func(*testing.T, *Memory)
		want   []string // all outcomes, each of which must come up
	}{
		"write over": {func(t *testing.T, m *Memory) {
			must(t, m.WriteFile("a", sectors("000")))
			write(t, m, 0, sectors("111"))
		}, onlyA("000", "001", "010", "011", "100", "101", "110", "111")},
		"write over twice": {func(t *testing.T, m *Memory) {
			must(t, m.WriteFile("a", sectors("00")))
			write(t, m, 0, sectors("11"))
			write(t, m, sectorBytes, sectors("2"))
		}, onlyA("00", "01", "02", "10", "11", "12")},
		"write after the end": {func(t *testing.T, m *Memory) {
			write(t, m, 1, []byte("new"))
			write(t, m, 4, []byte("!"))
		}, onlyA("A", "Anew", "Anew!", "A\x00\x00\x00", "A\x00\x00\x00\x00", "Anew\x00")},
		"cut": {func(t *testing.T, m *Memory) {
			must(t, m.WriteFile("a", []byte("0123456789")))
			must(t, write(t, m, 0, nil).Truncate(4))
			must(t, write(t, m, 0, nil).Truncate(8))
		}, onlyA("0123456789", "0123", "0123\x00\x00\x00\x00")},
		"rename over another": {func(t *testing.T, m *Memory) {
			must(t, m.Rename("a", "b"))
		}, []string{"a=A b=B d/c=C", "b=A d/c=C"}},
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
		"rename to another directory, and sync that": {func(t *testing.T, m *Memory) {
			must(t, m.Rename("a", "x"))
			must(t, m.Rename("x", "d/x"))
			must(t, m.Remove("b"))
			must(t, m.SyncDir("d"))
		}, []string{"b=B d/c=C d/x=A", "d/c=C d/x=A"}},
		"rename a directory after a file in it": {func(t *testing.T, m *Memory) {
			must(t, m.Rename("d/c", "d/x"))
			must(t, m.Rename("d", "e"))
		}, []string{"a=A b=B d/c=C", "a=A b=B d/x=C", "a=A b=B e/c=C", "a=A b=B e/x=C"}},
		"rename a directory, and sync that": {func(t *testing.T, m *Memory) {
			must(t, m.Rename("d/c", "d/x"))
			must(t, m.Rename("d", "e"))
			must(t, m.SyncDir("."))
		}, []string{"a=A b=B e/c=C", "a=A b=B e/x=C"}},
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
			seen := outcomes(t, m, 0.5)
			for _, files := range tt.want {
				words := strings.Fields(files)
				slices.Sort(words)
				files = strings.Join(words, " ")
				if seen[files] == 0 {
					t.Errorf("no crash of 400 left %q", files)
				}
				delete(seen, files)
			}
			if len(seen) > 0 {
				t.Errorf("crashes left %v, which must not be", seen)
			}
		})
	}
}
