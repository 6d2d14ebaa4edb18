package yellowstone

import (
	"encoding/json"
	"os"
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
		if want != "" && !json.Valid([]byte(want)) {
			t.Errorf("%s is no JSON", want)
		}
		for n := range said {
			if got := decodeErr(nodetest.Wire(nil).Bytes(1, said[:n])); got != "" && got != `{"InstructionError":[1,"BorshIoError"]}` {
				t.Errorf("the first %d bytes of % x are read as %s", n, said, got)
			}
		}
	}
	long := append([]byte{8, 0, 0, 0, 1, 44, 0, 0, 0, 1000 % 256, 1000 / 256, 0, 0, 0, 0, 0, 0}, slices.Repeat([]byte{'"'}, 1000)...)
	ledgertest.Equal(t, decodeErr(nodetest.Wire(nil).Bytes(1, long)), "", "a text that is too long")
}

// TestRecordedErrsAreRead decodes what the transactions of recorded blocks failed with: solana.storage.ConfirmedBlock {transactions 4
// {meta 2 {err 1}}}.
func TestRecordedErrsAreRead(t *testing.T) {
	for name, want := range map[string]int{"mainnet-43200000.confirmedblock.pb": 3, "mainnet-64800004.confirmedblock.pb": 5} {
		block, err := os.ReadFile(datatest.Path(t, "blocks/"+name))
		ledgertest.ErrorIs(t, err, nil, name)
		failed := 0
		for _, tx := range parts(block, 4) {
			for _, meta := range parts(tx, 2) {
				for _, said := range parts(meta, 1) {
					failed++
					if text := decodeErr(said); !json.Valid([]byte(text)) {
						t.Errorf("%s: % x is read as %q", name, said, text)
					} else {
						t.Log(text)
					}
				}
			}
		}
		ledgertest.Equal(t, failed, want, "%s: failed transactions", name)
	}
}

// parts returns the parts of a message with a number.
func parts(message []byte, number uint64) (all [][]byte) {
	for m := (reader{rest: message}); m.next(); {
		if uint64(m.number) == number {
			all = append(all, m.part())
		}
	}
	return all
}
