package file

import (
	"bufio"
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"

	"ledgerd/engine/codec"
	"ledgerd/engine/ledger"
	"ledgerd/engine/source/nodejson"
)

// checkEvent is an emit that fails the test unless the event survives its encoding and
// keeps what the sequencer relies on.
func checkEvent(t *testing.T) ledger.Emit {
	return func(_ context.Context, e ledger.Event) error {
		encoded := codec.AppendEvent(nil, e)
		decoded, err := codec.DecodeEvent(encoded)
		if err != nil {
			t.Fatalf("an emitted event does not decode: %v\n%+v", err, e)
		}
		if again := codec.AppendEvent(nil, decoded); !bytes.Equal(again, encoded) {
			t.Fatalf("an emitted event changes in its encoding:\n%+v\n%+v", e, decoded)
		}
		checkEventLine(t, e)
		switch e := e.(type) {
		case *ledger.Block:
			if e.Slot <= e.ParentSlot && e.Slot != 0 {
				t.Fatalf("block %d has parent %d", e.Slot, e.ParentSlot)
			}
		case *ledger.BaseState:
			if n := len(e.Accounts) + len(e.Mints); n > maxBaseAccounts {
				t.Fatalf("base state of %d accounts and mints", n)
			}
		}
		return nil
	}
}

// checkEventLine fails the test unless the event survives being written as an event line.
func checkEventLine(t testing.TB, e ledger.Event) {
	t.Helper()
	line := AppendEventLine(nil, e)
	again, err := parse(line)
	if err != nil {
		t.Fatalf("the line of an emitted event is refused: %v\n%s", err, line)
	}
	if !bytes.Equal(codec.AppendEvent(nil, again), codec.AppendEvent(nil, e)) {
		t.Fatalf("an emitted event changes in its line:\n%+v\n%+v\n%s", e, again, line)
	}
}

// checkMessage fails the test if an error could carry more of the input than a number.
func checkMessage(t *testing.T, err error) {
	if err != nil && (len(err.Error()) > 300 || strings.ContainsAny(err.Error(), "\x00\n\r\x1b\ufffd")) {
		t.Fatalf("message %q", err)
	}
}

// addBadInputs seeds a target with all bad inputs but the huge ones.
func addBadInputs(f *testing.F) {
	for _, tt := range badInputs(f) {
		if len(tt.content) < readAheadBytes {
			f.Add([]byte(tt.content))
		}
	}
}

// FuzzBlockJSON: what is fed as the answer of a node gives events that can be encoded, or an
// error; never a panic.
func FuzzBlockJSON(f *testing.F) {
	addBadInputs(f)
	k, sig := testKey(1), testSignature(2)
	f.Add([]byte(`[{"slot":3,"parentSlot":2,"blockhash":"` + k + `","blockTime":1,"blockHeight":2,"transactions":[{"transaction":{"signatures":["` + sig +
		`"],"message":{"accountKeys":["` + k + `"]}},"meta":{"err":null,"fee":5,"postBalances":[7],"loadedAddresses":{"writable":[],"readonly":[]},` +
		`"preTokenBalances":[{"accountIndex":0}],"postTokenBalances":[{"accountIndex":0,"mint":"` + k + `","owner":"` + k + `","programId":"` + k +
		`","uiTokenAmount":{"amount":"5","decimals":2,"uiAmountString":"0.05"}}]}}],"rewards":[{"pubkey":"` + k + `","lamports":-5,"postBalance":0}]},` +
		`{"pubkey":"` + k + `","account":{"lamports":1,"owner":"` + k + `","data":["","base64+zstd"],"executable":true,"rentEpoch":18446744073709551615}}]`))
	f.Fuzz(func(t *testing.T, content []byte) {
		data := new(nodejson.DataDecoder)
		defer data.Close()
		reader := jsonReader{log: slog.New(slog.DiscardHandler), data: data, out: &sink{emit: checkEvent(t)}}
		checkMessage(t, reader.run(t.Context(), bufio.NewReader(bytes.NewReader(content))))
	})
}

// FuzzNDJSON: the same for event lines.
func FuzzNDJSON(f *testing.F) {
	addBadInputs(f)
	k := testKey(1)
	f.Add([]byte(`{"type":"accounts","slot":1,"accounts":[{"pubkey":"` + k + `","lamports":1,"token":{"mint":"` + k + `","owner":"` + k +
		`","amount":"5","state":"frozen","delegate":"` + k + `","delegated_amount":"7","close_authority":null}},{"pubkey":"` + k +
		`","lamports":1,"owner":"` + k + `","data":"QUJD"},{"pubkey":"` + k + `","mint":{"decimals":1,"supply":"5","scaled":true}}]}`))
	f.Add([]byte(`{"type":"slot","slot":1,"status":"dead","blockhash":"` + k + `"}`))
	f.Fuzz(func(t *testing.T, content []byte) {
		data := new(nodejson.DataDecoder)
		defer data.Close()
		reader := lineReader{decoder: lineDecoder{data: data}, out: &sink{emit: checkEvent(t)}}
		checkMessage(t, reader.run(t.Context(), bufio.NewReader(bytes.NewReader(content))))
	})
}
