package yellowstone

import (
	"encoding/binary"
	"encoding/json"
	"os"
	"slices"
	"testing"

	"ledgerd/engine/ledger/datatest"
	"ledgerd/engine/ledger/ledgertest"
)

// TestErrsReadAsNodesAnswerThem decodes what transactions fail with, and none of what is cut short, unknown or too long.
func TestErrsReadAsNodesAnswerThem(t *testing.T) {
	text := func(n int) []byte {
		return append([]byte{8, 0, 0, 0, 1, 44, 0, 0, 0, byte(n), byte(n >> 8), 0, 0, 0, 0, 0, 0}, slices.Repeat([]byte{'"'}, n)...)
	}
	message := func(said []byte) []byte {
		return append(binary.AppendUvarint([]byte{1<<3 | 2}, uint64(len(said))), said...)
	}
	for want, said := range map[string][]byte{
		`"AccountInUse"`:                                                    {0, 0, 0, 0},
		`"CommitCancelled"`:                                                 {38, 0, 0, 0},
		`{"InstructionError":[3,{"Custom":6001}]}`:                          {8, 0, 0, 0, 3, 25, 0, 0, 0, 0x71, 0x17, 0, 0},
		`{"InstructionError":[255,"GenericError"]}`:                         {8, 0, 0, 0, 255, 0, 0, 0, 0},
		`{"InstructionError":[2,"IllegalOwner"]}`:                           {8, 0, 0, 0, 2, 49, 0, 0, 0},
		`{"InstructionError":[2,"BorshIoError"]}`:                           {8, 0, 0, 0, 2, 44, 0, 0, 0},
		`{"InstructionError":[1,{"BorshIoError":"\"\""}]}`:                  text(2),
		`{"InstructionError":[0,"BuiltinProgramsMustConsumeComputeUnits"]}`: {8, 0, 0, 0, 0, 53, 0, 0, 0},
		`{"DuplicateInstruction":7}`:                                        {30, 0, 0, 0, 7},
		`{"InsufficientFundsForRent":{"account_index":9}}`:                  {31, 0, 0, 0, 9},
		`{"ProgramExecutionTemporarilyRestricted":{"account_index":1}}`:     {35, 0, 0, 0, 1},
	} {
		ledgertest.Equal(t, decodeErr(message(said)), want, "% x", said)
		if !json.Valid([]byte(want)) {
			t.Errorf("%s is no JSON", want)
		}
		for n := range said {
			if got := decodeErr(message(said[:n])); got != "" && got != `{"InstructionError":[1,"BorshIoError"]}` {
				t.Errorf("the first %d bytes of % x are read as %s", n, said, got)
			}
		}
	}
	for name, said := range map[string][]byte{
		"an unknown variant": {39, 0, 0, 0}, "an unknown one of an instruction": {8, 0, 0, 0, 1, 54, 0, 0, 0}, "nothing": nil, "a text that is too long": text(1000),
	} {
		ledgertest.Equal(t, decodeErr(message(said)), "", name)
	}
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
