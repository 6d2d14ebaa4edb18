package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"ledgerd/engine/datadir"
	"ledgerd/engine/ledger"
)

func TestLogDumpShowsOneRecordALine(t *testing.T) {
	dir := newDataDir(t)
	log := writeLog(t, dir, toolCommits(), 0)
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	before := listing(t, dir)
	out, errors, code := tool(t, "log", "dump", "--data-dir", dir)
	if code != exitOK || errors != "" {
		t.Fatalf("exit %d, %s", code, errors)
	}
	lines := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
	want := []string{
		"1 base 4 " + ledger.Hash{}.String() + " end 0 - | 1 accounts, 0 mints",
		"2 block 5 " + toolHash(5).String() + " more 1 1-1 | parent 4, 1 transactions",
		"3 status 5 " + toolHash(5).String() + " end 0 - | finalized",
		"4 block 6 " + toolHash(6).String() + " end 2 2-3 | parent 5, 1 transactions",
		"5 rollback 5 " + toolHash(5).String() + " more 2 4-5 | from slot 6",
		"6 block 8 " + toolHash(8).String() + " end 0 - | parent 5, 1 transactions",
	}
	if len(lines) != len(want)+1 || lines[0] != logHeading {
		t.Fatalf("got\n%s", out)
	}
	position, durable := uint64(0), uint64(0)
	for i, line := range lines[1:] {
		words := strings.Fields(line)
		got := fmt.Sprintf("%s | %s", strings.Join(words[2:9], " "), strings.Join(words[10:], " "))
		if got != want[i] {
			t.Errorf("record %d:\n got %s\nwant %s", i+1, got, want[i])
		}
		at, err1 := strconv.ParseUint(words[0], 10, 64)
		known, err2 := strconv.ParseUint(words[9], 10, 64)
		if err1 != nil || err2 != nil || at <= position || known < durable || known > at || words[1] != fmt.Sprint("1:", at) {
			t.Errorf("record %d: %s, after position %d and durable %d", i+1, line, position, durable)
		}
		position, durable = at, known
	}
	if after := listing(t, dir); after != before {
		t.Errorf("a dump changes the directory:\n%s\n%s", before, after)
	}
}

func TestLogDumpShowsAPart(t *testing.T) {
	dir := newDataDir(t)
	writeLog(t, dir, toolCommits(), 0)
	tests := map[string]struct {
		args []string
		want string // versions
	}{
		"from a record in a commit": {[]string{"--from", "3"}, "3 4 5 6"},
		"a few":                     {[]string{"--limit", "2"}, "1 2"},
		"a few from there":          {[]string{"--from", "5", "--limit", "1"}, "5"},
		"behind the newest":         {[]string{"--from", "7"}, ""},
	}
	for name, tt := range tests {
		out, errors, code := tool(t, slices.Concat([]string{"log", "dump", "--data-dir", dir}, tt.args)...)
		var got []string
		for _, line := range strings.Split(strings.TrimSuffix(out, "\n"), "\n")[1:] {
			got = append(got, strings.Fields(line)[2])
		}
		if code != exitOK || errors != "" || strings.Join(got, " ") != tt.want {
			t.Errorf("%s: exit %d, records %s, %s; want %s", name, code, got, errors, tt.want)
		}
	}
	_, errors, code := tool(t, "log", "dump", "--data-dir", dir, "--from", "99")
	if want := "ledgerd: records missing from the log: record 99 was asked for, the newest is 6\n"; code != exitFailure || errors != want {
		t.Errorf("past the end: exit %d, %q", code, errors)
	}
}

func TestLogDumpShowsUpdatesAsJSON(t *testing.T) {
	dir := newDataDir(t)
	writeLog(t, dir, toolCommits(), 0)
	out, _, code := tool(t, "log", "dump", "--data-dir", dir, "--from", "4", "--limit", "2", "--full")
	account := func(seq int, name string, lamports int, more string) string {
		return fmt.Sprintf(`{"seq":%d,"account":{"pubkey":"%s","lamports":%d,"owner":"11111111111111111111111111111111"}%s}`, seq, toolKey(name), lamports, more)
	}
	var got []string
	for line := range strings.Lines(out) {
		if line[0] == '{' {
			got = append(got, strings.TrimSuffix(line, "\n"))
		}
	}
	want := []string{
		account(2, "a", 3, ""), account(3, "b", 9, `,"owner_before":"`+ledger.TokenProgram.String()+`","wallet_before":"`+toolKey("wallet").String()+`"`),
		account(4, "a", 2, ""), account(5, "b", 0, ""),
	}
	if code != exitOK || !slices.Equal(got, want) {
		t.Errorf("exit %d, got\n%s\nwant\n%s", code, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestLogVerifyTellsTotals(t *testing.T) {
	dir := newDataDir(t)
	out, errors, code := tool(t, "log", "verify", "--data-dir", dir)
	if want := "no records\nok\n"; code != exitOK || out != want || errors != "" {
		t.Errorf("empty: exit %d, %q, %s; want %q", code, out, errors, want)
	}
	log := writeLog(t, dir, toolCommits(), 0)
	for _, name := range []string{"beside its writer", "closed"} {
		if name == "closed" {
			log.Close()
		}
		held := func() string { return listing(t, dir) }
		if name != "closed" { // its writer replaces the mark of what is durable
			held = func() string { return listing(t, segments(t, dir)[0]) }
		}
		before := held()
		out, errors, code := tool(t, "log", "verify", "--data-dir", dir)
		want := "6 records, 1 to 6, in 4 commits: 3 blocks, 1 rollbacks, 5 updates, seq 1 to 5\n"
		if code != exitOK || !strings.HasPrefix(out, want) || !strings.HasSuffix(out, "\nthe newest record is 6, at slot 8\nok\n") || errors != "" {
			t.Errorf("%s: exit %d, %s, %s; want %s", name, code, out, errors, want)
		}
		if held() != before {
			t.Error("verifying changes the directory")
		}
	}
}

// A log that was pruned is only worth something with a snapshot that leads to its beginning.
func TestLogThatNoSnapshotLeadsToIsToldOf(t *testing.T) {
	dir := newDataDir(t)
	log := writeLog(t, dir, toolCommits(), 1<<10)
	log.Close()
	all := segments(t, dir)
	if len(all) < 2 {
		t.Fatalf("segments %q, want several", all)
	}
	if err := os.Remove(all[0]); err != nil {
		t.Fatal(err)
	}
	if out, errors, code := tool(t, "log", "verify", "--data-dir", dir); code != exitFailure || !strings.Contains(errors, "no snapshot leads there") {
		t.Errorf("without a snapshot: exit %d, %s%s", code, out, errors)
	}
	writeSnapshot(t, dir, 7, 5, 1)
	if out, errors, code := tool(t, "log", "verify", "--data-dir", dir); code != exitOK {
		t.Errorf("with a snapshot of a record it holds: exit %d, %s%s", code, out, errors)
	}
}

// Frames may be whole and records wrong all the same: whoever wrote them lost count.
func TestLogVerifyFollowsTheNumbersOfUpdates(t *testing.T) {
	dir := newDataDir(t)
	commits := toolCommits()
	commits[2][0].FirstSeq++
	writeLog(t, dir, commits, 0)
	out, errors, code := tool(t, "log", "verify", "--data-dir", dir)
	if want := "was written wrong: its updates are numbered from 3, not 2\n"; code != exitFailure || !strings.HasPrefix(errors, "ledgerd: record 4, in segment 1 at byte ") || !strings.HasSuffix(errors, want) {
		t.Errorf("exit %d, %s, %s; want %s", code, out, errors, want)
	}
}

// What a crash left of a commit, or what a running node has written of it, is no damage.
func TestLogEndsInAnUnfinishedCommit(t *testing.T) {
	dir := newDataDir(t)
	log := writeLog(t, dir, toolCommits()[:3], 0)
	whole, err := os.ReadFile(segments(t, dir)[0])
	if err != nil {
		t.Fatal(err)
	}
	log.Close()
	mark, err := os.ReadFile(filepath.Join(dir, "log", "newest")) // what is durable
	if err != nil {
		t.Fatal(err)
	}
	dir = newDataDir(t)
	log = writeLog(t, dir, toolCommits(), 0)
	path := segments(t, dir)[0]
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	log.Close()
	// The crash comes before the mark says that the last commit is durable.
	if err := os.WriteFile(filepath.Join(dir, "log", "newest"), mark, 0o600); err != nil {
		t.Fatal(err)
	}
	start := 0 // of the last commit
	for start < len(whole) && whole[start] == content[start] {
		start++
	}
	clear(content[start+200:])
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	out, errors, code := tool(t, "log", "verify", "--data-dir", dir)
	if code != exitOK || !strings.HasPrefix(out, "4 records, 1 to 4, in 3 commits") || !strings.HasSuffix(out, "the newest record is 4, at slot 6\n"+unfinishedCommit+"\nok\n") || errors != "" {
		t.Errorf("verify: exit %d, %s, %s", code, out, errors)
	}
	out, errors, code = tool(t, "log", "dump", "--data-dir", dir)
	if code != exitOK || strings.Count(out, "\n") != 5 || errors != unfinishedCommit+"\n" {
		t.Errorf("dump: exit %d, %s, %s", code, out, errors)
	}
}

func TestDamagedLogIsSaidToBe(t *testing.T) {
	dir := newDataDir(t)
	old := writeSnapshot(t, dir, 5, 3, 2)
	log := writeLog(t, dir, toolCommits(), 0)
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	path := segments(t, dir)[0]
	dump, _, _ := tool(t, "log", "dump", "--data-dir", dir, "--from", "4", "--limit", "1")
	_, offset, _ := strings.Cut(strings.Fields(strings.Split(dump, "\n")[1])[1], ":")
	at, err := strconv.Atoi(offset)
	if err != nil {
		t.Fatal(err)
	}
	flipByte(t, path, at+120)
	message := fmt.Sprintf("ledgerd: the log is damaged in %s at byte %d: ", path, at)

	out, errors, code := tool(t, "log", "dump", "--data-dir", dir)
	if code != exitFailure || strings.Count(out, "\n") != 4 || !strings.HasPrefix(errors, message) || !strings.HasSuffix(errors, "; the last good record is 3, at slot 5\n") {
		t.Errorf("dump: exit %d, %s, %s; want %s", code, out, errors, message)
	}
	verify := func(help string) {
		t.Helper()
		out, errors, code := tool(t, "log", "verify", "--data-dir", dir)
		if code != exitFailure || !strings.HasPrefix(out, "3 records, 1 to 3, in 2 commits") || !strings.HasPrefix(errors, message) || !strings.HasSuffix(out, "\n"+help+"\n") {
			t.Errorf("verify: exit %d, %s, %s; want %s and %s", code, out, errors, help, message)
		}
	}
	verify("the newest snapshot from before the damage is " + old + ", at slot 5")
	flipByte(t, filepath.Join(datadir.SnapshotDir(dir), old), -1)
	verify("no snapshot is from before the damage")
}

// Damage in a segment that no start reads any more is damage all the same, but no reason to
// worry for the node.
func TestDamageBeforeASnapshotIsSaidToBeHarmless(t *testing.T) {
	dir := newDataDir(t)
	log := writeLog(t, dir, toolCommits(), 600)
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	paths := segments(t, dir)
	if len(paths) < 3 {
		t.Fatalf("%d segments, want more", len(paths))
	}
	flipByte(t, paths[0], 100)
	name := writeSnapshot(t, dir, 8, 6, 2)
	out, errors, code := tool(t, "log", "verify", "--data-dir", dir)
	help := "the log is whole behind snapshot " + name + ", at slot 8: a start needs no more\n"
	if code != exitFailure || !strings.HasSuffix(out, help) || !strings.Contains(errors, "damaged in "+paths[0]) {
		t.Errorf("exit %d, %s, %s; want %s", code, out, errors, help)
	}
	if err := os.Remove(paths[1]); err != nil {
		t.Fatal(err)
	}
	if out, errors, code = tool(t, "log", "verify", "--data-dir", dir); code != exitFailure || strings.Contains(out, "a start needs no more") {
		t.Errorf("a segment missing: exit %d, %s, %s", code, out, errors)
	}
}

// A start reads the segment that holds the snapshot's own record, even if it is the last one there.
func TestDamageBesideTheSnapshotsRecordIsNotSaidToBeHarmless(t *testing.T) {
	dir := newDataDir(t)
	log := writeLog(t, dir, toolCommits(), 600)
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	dump, _, _ := tool(t, "log", "dump", "--data-dir", dir)
	segment := make(map[string]string) // of each record
	for _, line := range strings.Split(strings.TrimSuffix(dump, "\n"), "\n")[1:] {
		words := strings.Fields(line)
		segment[words[2]], _, _ = strings.Cut(words[1], ":")
	}
	if segment["2"] != segment["3"] || segment["3"] == segment["4"] {
		t.Fatalf("record 3 must end its segment and not begin it: %v", segment)
	}
	name := writeSnapshot(t, dir, 5, 3, 2)
	n, err := strconv.Atoi(segment["3"])
	if err != nil {
		t.Fatal(err)
	}
	flipByte(t, segments(t, dir)[n-1], 100)
	out, errors, code := tool(t, "log", "verify", "--data-dir", dir)
	if code != exitFailure || !strings.HasSuffix(out, "\nno snapshot is from before the damage\n") {
		t.Errorf("snapshot %s: exit %d, %s, %s", name, code, out, errors)
	}
}

func TestToolsWantADataDirectory(t *testing.T) {
	dir := t.TempDir()
	for _, command := range []string{"log dump", "log verify", "snapshot list", "snapshot verify", "export"} {
		args := append(strings.Fields(command), "--data-dir", dir)
		out, errors, code := tool(t, args...)
		if want := "ledgerd: " + dir + " is not a data directory: it has no node.json\n"; code != exitFailure || errors != want || out != "" {
			t.Errorf("%s: exit %d, %q, %q; want %q", command, code, out, errors, want)
		}
		if _, errors, code := tool(t, append(args, "--nonsense")...); code != exitUsage || !strings.HasPrefix(errors, "ledgerd: unknown flag") {
			t.Errorf("%s --nonsense: exit %d, %q", command, code, errors)
		}
	}
	if names, err := os.ReadDir(dir); err != nil || len(names) > 0 {
		t.Errorf("the tools made %v, err = %v", names, err)
	}
}
