package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"ledgerd/engine/ledger/ledgertest"
)

var rewrite = flag.Bool("update", false, "write the golden files anew")

// TestScenes plays the command lines of testdata, each with a node of its own.
func TestScenes(t *testing.T) {
	t.Setenv("COLUMNS", "80") // of help
	ledgertest.Scenes(t, "testdata/*.txt", "$ ledgerbench", *rewrite, func(t *testing.T, scene string) string {
		line, _, _ := strings.Cut(scene, "\n")
		n, dir := new(node), t.TempDir()
		n.start(t)
		for name, content := range map[string]string{"empty": "", "keys": "abc\n", "apikeys": "one\ntwo\n"} {
			must(t, os.WriteFile(dir+"/"+name, []byte(content), 0o600))
		}
		var args []string
		for word := range strings.FieldsSeq(strings.NewReplacer("NODE", n.url, "DIR", dir).Replace(line)) {
			args = append(args, strings.ReplaceAll(word, "%20", " "))
		}
		if strings.Contains(line, "NODE") && !strings.Contains(line, "--ca ") && !strings.Contains(line, "--insecure") {
			args = append(args, "--ca", n.ca)
		}
		if strings.HasPrefix(line, " load NODE") && !strings.Contains(line, "--json") {
			args = append(args, "--json", dir+"/figures")
		}
		code, said := does(t, args...)
		var b strings.Builder
		fmt.Fprintf(&b, "$ ledgerbench%s\nexit code %d\n%s%s", line, code, &said.err, &said.out)
		var f figures
		if content, err := os.ReadFile(dir + "/figures"); err == nil && json.Unmarshal(content, &f) == nil {
			fmt.Fprintf(&b, "record: %+v, %v latencies; errors %v, wrong %v, missed %v\n", f.Requests, f.Latency["count"], f.Errors, f.Wrong, f.Missed)
		}
		n.mu.Lock()
		defer n.mu.Unlock()
		for _, what := range append(slices.Sorted(maps.Keys(n.asked)), slices.Sorted(maps.Keys(n.fields))...) {
			fmt.Fprintf(&b, "asked %s\n", what)
		}
		told := strings.NewReplacer(n.url, "NODE", strings.TrimPrefix(n.url, "https://"), "NODE", dir, "DIR").Replace(b.String())
		return varies.ReplaceAllString(told, "${1}N") + "\n"
	})
}

// varies finds what differs from time to time, and what stands before it: all that was timed, and bytes, where a slot may have more digits.
var varies = regexp.MustCompile(`(?m)(^ +\d+ |connections, |it is |^bytes +|unsent; ) *[\d.e+-]+(,? +[\d.]+)*`)
