package yellowstone

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"ledgerd/engine/ledger/datatest"
	"ledgerd/engine/ledger/ledgertest"
	"ledgerd/engine/source/nodetest"
)

// TestErrsReadAsNodesAnswerThem decodes what transactions fail with, and none of what is cut short, unknown or too long. An entry of
// testdata/errs.txt is what a transaction failed with, in hexadecimal, and the JSON of it.
func TestErrsReadAsNodesAnswerThem(t *testing.T) {
	for _, lines := range datatest.Entries(t, "errs.txt") {
		said, want := hexadecimal(t, lines[0]), strings.TrimSpace(strings.TrimPrefix(lines[1], ">"))
		ledgertest.Equal(t, decodeErr(nodetest.Wire(nil).Bytes(1, said)), want, lines[0])
		ledgertest.Holds(t, want == "" || json.Valid([]byte(want)), "%s is no JSON", want)
		for n := range said {
			got := decodeErr(nodetest.Wire(nil).Bytes(1, said[:n]))
			ledgertest.Holds(t, got == "" || got == `{"InstructionError":[1,"BorshIoError"]}`, "the first %d bytes of % x are read as %s", n, said, got)
		}
	}
	long := append([]byte{8, 0, 0, 0, 1, 44, 0, 0, 0, 1000 % 256, 1000 / 256, 0, 0, 0, 0, 0, 0}, slices.Repeat([]byte{'"'}, 1000)...)
	ledgertest.Equal(t, decodeErr(nodetest.Wire(nil).Bytes(1, long)), "", "a text that is too long")
}
