package datatest

import (
	"strings"
	"testing"
)

// Entries returns the entries of a file in testdata: what empty lines separate, each as its lines. By convention the first of
// them is a name after "# ", then comes an input, and after "> " what has to come of it.
func Entries(t testing.TB, name string) (all [][]string) {
	t.Helper()
	content := string(Read(t, "testdata/"+name))
	for entry := range strings.SplitSeq(strings.TrimSpace(content), "\n\n") {
		all = append(all, strings.Split(entry, "\n"))
	}
	return all
}
