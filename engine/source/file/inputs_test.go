package file

import (
	"flag"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"ledgerd/engine/ledger/datatest"
)

// nodeBlock returns the result of getBlock with no transactions.
func nodeBlock(slot string, parent uint64, seed byte) string {
	return fmt.Sprintf(`{%s"parentSlot":%d,"blockhash":%q,"transactions":[]}`, slot, parent, testKey(seed))
}

var update = flag.Bool("update", false, "rewrite testdata")

// An entry of testdata/read.txt is a name, perhaps the name of a file, its content, the event lines that say the same,
// with all data, and what is logged.
func TestInputsAreRead(t *testing.T) {
	logged := regexp.MustCompile(`msg="([^"]*)"`)
	var list []string
	for _, lines := range datatest.Entries(t, "read.txt") {
		name, hasName := strings.CutPrefix(lines[1], "@ ")
		head := 2
		if !hasName {
			name = "a"
		} else {
			head++
		}
		path := filepath.Join(t.TempDir(), name)
		writeFile(t, path, "\n"+lines[head-1]+"\r\n \n")
		s, log := open(t, path)
		s.HoldData(allData)
		got, err := run(s, nil)
		if err != nil {
			t.Errorf("%s: %v", lines[0], err)
		}
		shown := strings.Join(lines[:head], "\n") + "\n"
		for _, e := range got {
			shown += "> " + string(AppendEventLine(nil, e))
		}
		for _, m := range logged.FindAllStringSubmatch(log.String(), -1) {
			shown += "! " + m[1] + "\n"
		}
		list = append(list, shown)
		if want := strings.Join(lines, "\n") + "\n"; shown != want && !*update {
			t.Errorf("got\n%swant\n%s", shown, want)
		}
	}
	if *update {
		writeFile(t, filepath.Join("testdata", "read.txt"), strings.Join(list, "\n"))
	}
}

func TestTwoKeysInTheNameOfAFileSayNothing(t *testing.T) {
	if got := keyInName(testKey(1) + "-" + testKey(2)); got.Known {
		t.Errorf("two keys in a name: got %s", got.Value)
	}
}
