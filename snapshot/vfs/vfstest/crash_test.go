package vfstest

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"ledgerd/engine/ledger/datatest"
	"ledgerd/engine/ledger/ledgertest"
)

// payload returns a text as bytes, of digits as a sector each.
func payload(text string) (p []byte) {
	if strings.Trim(text, "012") != "" {
		return []byte(text)
	}
	for _, c := range []byte(text) {
		p = append(p, bytes.Repeat([]byte{c}, sectorBytes)...)
	}
	return p
}

// run does what a script says, such as "mv a b, sync .".
func run(t *testing.T, m *Memory, script string) {
	for line := range strings.SplitSeq(script, ", ") {
		word := append(strings.Fields(line), "", "")
		name, number := word[1], int64(0)
		_, _ = fmt.Sscan(word[2], &number)
		switch word[0] {
		case "mv":
			must(t, m.Rename(name, word[2]))
		case "rm":
			must(t, m.Remove(name))
		case "mkdir":
			must(t, m.MkdirAll(name))
		case "sync":
			must(t, m.SyncDir(name))
		case "put": // all of it durable
			must(t, m.WriteFile(name, payload(word[2])))
		case "new":
			must(t, written(t, m, name, word[2]).Sync())
		default:
			f, err := m.OpenWrite(name)
			must(t, err)
			if word[0] == "cut" {
				must(t, f.Truncate(number))
			} else {
				_, err = f.WriteAt(payload(word[3]), number)
				must(t, err)
			}
		}
	}
}

// outcomes returns what a disk is seen to hold after many crashes, each as "name=bytes name=bytes".
func outcomes(t *testing.T, m *Memory) map[string]int {
	seen := map[string]int{}
	for seed := range uint64(150) {
		copied := m.Crash(0.5, seed)
		ledgertest.Equal(t, holds(t, m.Crash(0.5, seed), "."), holds(t, copied, "."), "what the same crash leaves")
		var files []string
		for _, name := range copied.Paths() {
			text := contentOf(t, copied, name)
			// What survived after the size that survived must not come back.
			f, err := copied.OpenWrite(name)
			must(t, err)
			must(t, f.Truncate(8*pageBytes))
			if longer := contentOf(t, copied, name); strings.TrimRight(longer[len(text):], "\x00") != "" {
				t.Errorf("%s, made longer after a crash, does not go on with zeros", name)
			}
			for _, digit := range "012" {
				text = strings.ReplaceAll(text, string(payload(string(digit))), string(digit))
			}
			files = append(files, name+"="+text)
		}
		seen[strings.Join(files, " ")]++
	}
	return seen
}

// An entry of testdata/crashes.txt is a script, and all outcomes of a crash after it, each of which must come up. "_" is a zero.
func TestACrashLeavesAnyOfWhatItMay(t *testing.T) {
	for _, lines := range datatest.Entries(t, "crashes.txt") {
		script := strings.TrimPrefix(lines[0], "# ")
		m := NewMemory()
		run(t, m, "put a A, put b B, put d/c C")
		run(t, m, script)
		seen := outcomes(t, m)
		for _, files := range lines[1:] {
			words := strings.Fields(strings.ReplaceAll(files, "_", "\x00")[2:])
			slices.Sort(words)
			files = strings.Join(words, " ")
			ledgertest.Holds(t, seen[files] != 0, "%s: no crash of 150 left %q", script, files)
			delete(seen, files)
		}
		ledgertest.Holds(t, len(seen) == 0, "%s: crashes left %v, which must not be", script, seen)
	}
}
