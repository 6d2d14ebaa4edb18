package file

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"ledgerd/engine/ledger"
)

// nodeBlock returns the result of getBlock with no transactions.
func nodeBlock(slot string, parent uint64, seed byte) string {
	return fmt.Sprintf(`{%s"parentSlot":%d,"blockhash":%q,"transactions":[]}`, slot, parent, testKey(seed))
}

func TestSlotOfABlock(t *testing.T) {
	tests := map[string]struct {
		file    string
		content string
		want    ledger.Slot
		guessed bool
	}{
		"its own":                          {"block-9.json", nodeBlock(`"slot":7,`, 5, 1), 7, false},
		"its own, first":                   {"a.json", nodeBlock(`"slot":0,`, 0, 1), 0, false},
		"null is not its own":              {"block-9.json", nodeBlock(`"slot":null,`, 5, 1), 9, false},
		"the name":                         {"block-9.json", nodeBlock("", 5, 1), 9, false},
		"the name of a list of one":        {"block-9.json", "[" + nodeBlock("", 5, 1) + "]", 9, false},
		"the only number above":            {"v2-mainnet-4-9.json", nodeBlock("", 5, 1), 9, false},
		"the same number twice":            {"9-9.json", nodeBlock("", 5, 1), 9, false},
		"leading zeros":                    {"block-009.json", nodeBlock("", 5, 1), 9, false},
		"two numbers above":                {"block-7-9.json", nodeBlock("", 5, 1), 6, true},
		"none above":                       {"child-of-5.json", nodeBlock("", 5, 1), 6, true},
		"no number":                        {"block.json", nodeBlock("", 5, 1), 6, true},
		"too large for a slot":             {"99999999999999999999.json", nodeBlock("", 5, 1), 6, true},
		"the folder's name does not count": {filepath.Join("9", "block.json"), nodeBlock("", 5, 1), 6, true},
		"the largest":                      {"18446744073709551615.json", nodeBlock("", 18446744073709551614, 1), 18446744073709551615, false},
	}
	for name, tt := range tests {
		path := filepath.Join(t.TempDir(), tt.file)
		writeFile(t, path, tt.content)
		s, lines := open(t, path)
		got, err := run(s, nil)
		if err != nil || len(got) != 1 {
			t.Errorf("%s: %d events, err = %v", name, len(got), err)
			continue
		}
		if b := got[0].(*ledger.Block); b.Slot != tt.want {
			t.Errorf("%s: slot %d, want %d", name, b.Slot, tt.want)
		}
		if warned := strings.Contains(lines.String(), "does not say its slot"); warned != tt.guessed {
			t.Errorf("%s: warned %v, want %v: %s", name, warned, tt.guessed, lines)
		}
	}
}

// The name cannot say which of several blocks it means.
func TestNameOfAFileSaysNothingOfSeveralBlocks(t *testing.T) {
	for name, content := range map[string]string{
		"list":     "[" + nodeBlock("", 5, 1) + "," + nodeBlock("", 6, 2) + "]",
		"sequence": nodeBlock("", 5, 1) + "\n" + nodeBlock("", 6, 2),
	} {
		got := blocks(t, write(t, "block-9.json", content))
		if len(got) != 2 || got[0].Slot != 6 || got[1].Slot != 7 {
			t.Errorf("%s: got %d blocks, the first at %d", name, len(got), got[0].Slot)
		}
	}
}
