package ledgertest

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/diff"
)

// Golden notes an error unless a file holds what is got, or writes that into it.
func Golden(t testing.TB, file, got string, update bool) {
	t.Helper()
	if update {
		Must(t, os.WriteFile(file, []byte(got), 0o644))
	} else if want := ReadFile(t, file); got != string(want) {
		t.Errorf("%s", diff.Diff(file, want, "got", []byte(got)))
	}
}

// Scenes plays the scenes in the files of a pattern, in a subtest for each file, and holds what play makes of each, which is its text and what
// came of it, to the file. A scene goes from behind one mark at the beginning of a line to the next.
func Scenes(t *testing.T, pattern, mark string, update bool, play func(t *testing.T, scene string) string) {
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files of scenes in %s: %v", len(files), pattern, err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			got, rest, _ := strings.Cut(string(ReadFile(t, file)), mark)
			for scene := range strings.SplitSeq(rest, "\n"+mark) {
				got += play(t, strings.TrimRight(scene, "\n"))
			}
			Golden(t, file, strings.TrimSpace(got)+"\n", update)
		})
	}
}

var repeated = regexp.MustCompile(`\$\[(.+?)\*(\d+)\]`)

// Repeated returns a line of a scene with a text so many times where that says $[TEXT*N]. A text that begins with a backslash is read as Go does.
func Repeated(t testing.TB, line string) string {
	t.Helper()
	return repeated.ReplaceAllStringFunc(line, func(all string) string {
		m := repeated.FindStringSubmatch(all)
		one, times := m[1], 0
		if strings.HasPrefix(one, `\`) {
			var err error
			one, err = strconv.Unquote(`"` + one + `"`)
			Must(t, err)
		}
		_, _ = fmt.Sscan(m[2], &times)
		return strings.Repeat(one, times)
	})
}
