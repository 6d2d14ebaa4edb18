package vfstest

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
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
	for seed := range uint64(400) {
		copied := m.Crash(0.5, seed)
		for what, same := range map[string]*Memory{
			"the same crash of a clone": m.Clone().Crash(0.5, seed), "a crash of what one left": copied.Crash(0.5, seed+1), "a clone": copied.Clone(),
		} {
			if seed%8 > 0 { // a sample
				break
			}
			if got, want := holds(t, same, "."), holds(t, copied, "."); got != want || same.UsedBytes() != copied.UsedBytes() {
				t.Errorf("%s holds %.300q, not %.300q", what, got, want)
			}
		}
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

// onlyA returns outcomes in which the file a holds each of these, and the others are as they were.
func onlyA(contents ...string) (outcomes []string) {
	for _, content := range contents {
		outcomes = append(outcomes, "a="+content+" b=B d/c=C")
	}
	return outcomes
}

func TestACrashLeavesAnyOfWhatItMay(t *testing.T) {
	for script, want := range map[string][]string{ // all outcomes, each of which must come up
		"put a 000, write a 0 111":                   onlyA("000", "001", "010", "011", "100", "101", "110", "111"),
		"put a 00, write a 0 11, write a 512 2":      onlyA("00", "01", "02", "10", "11", "12"),
		"put a 0, put b 0, write a 0 1, write b 0 1": {"a=0 b=0 d/c=C", "a=0 b=1 d/c=C", "a=1 b=0 d/c=C", "a=1 b=1 d/c=C"},
		"write a 0 B":                             onlyA("A", "B"),
		"write a 1 new, write a 4 !":              onlyA("A", "Anew", "Anew!", "A\x00\x00\x00", "A\x00\x00\x00\x00", "Anew\x00"),
		"put a abcdefghij, cut a 4, cut a 8":      onlyA("abcdefghij", "abcd", "abcd\x00\x00\x00\x00"),
		"mv a b":                                  {"a=A b=B d/c=C", "b=A d/c=C"},
		"mv a x, mv x a":                          {"a=A b=B d/c=C", "b=B d/c=C x=A"},
		"mv a x, mv b a, mv x b":                  {"a=A b=B d/c=C", "b=B d/c=C x=A", "a=B d/c=C x=A", "a=B b=A d/c=C"},
		"mv a old, new a new":                     {"a=A b=B d/c=C", "b=B d/c=C old=A", "a=new b=B d/c=C old=A"},
		"rm a, rm b":                              {"a=A b=B d/c=C", "a=A d/c=C", "b=B d/c=C", "d/c=C"},
		"mv a x, mv x d/x, rm b, sync d":          {"b=B d/c=C d/x=A", "d/c=C d/x=A"},
		"mv d/c d/x, mv d e":                      {"a=A b=B d/c=C", "a=A b=B d/x=C", "a=A b=B e/c=C", "a=A b=B e/x=C"},
		"mv d/c d/x, mv d e, sync .":              {"a=A b=B e/c=C", "a=A b=B e/x=C"},
		"mv d e, mkdir d, rm a":                   {"a=A b=B e/c=C", "b=B e/c=C"},
		"rm d/c, rm d":                            {"a=A b=B d/c=C", "a=A b=B"},
		"put e/x X, rm d/c, rm d, mv e d, rm a":   {"a=A b=B d/c=C e/x=X", "a=A b=B e/x=X", "a=A b=B d/x=X", "b=B d/c=C e/x=X", "b=B e/x=X", "b=B d/x=X"},
		"put a new, mv a d/a, sync ., rm d/a":     {"b=B d/a=new d/c=C", "b=B d/c=C"},
		"put a abc, new x new, sync ., cut x 1":   {"a=abc b=B d/c=C x=new", "a=abc b=B d/c=C x=n"},
		"rm a, mkdir a, put a/y Y, mv a/y a/z":    {"a/y=Y b=B d/c=C", "a/z=Y b=B d/c=C"},
		"new x 1, mv x a, sync ., mv a x, sync .": {"b=B d/c=C x=1"},
	} {
		m := NewMemory()
		run(t, m, "put a A, put b B, put d/c C")
		older := m.Clone()
		run(t, m, script)
		if got := holds(t, older, ".") + holds(t, older.Crash(0, 0), "."); got != strings.Repeat("a{A}b{B}d{c{C}}", 2) {
			t.Errorf("%s: an older copy became %q", script, got)
		}
		seen := outcomes(t, m)
		for _, files := range want {
			words := strings.Fields(files)
			slices.Sort(words)
			files = strings.Join(words, " ")
			if seen[files] == 0 {
				t.Errorf("%s: no crash of 400 left %q", script, files)
			}
			delete(seen, files)
		}
		if len(seen) > 0 {
			t.Errorf("%s: crashes left %v, which must not be", script, seen)
		}
	}
}
