package file

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/ledgertest"
	"ledgerd/engine/source/nodejson"
)

var must = ledgertest.Must

func discard(context.Context, ledger.Event) error { return nil }

// BenchmarkNDJSON reads lines of 1,000 accounts or transactions each, as a file of many of them is read.
func BenchmarkNDJSON(b *testing.B) {
	const items, lines = 1000, 16
	data := make([]byte, 165)
	data[64], data[108] = 5, byte(ledger.TokenInitialized)
	wallets, transactions := &ledger.Block{Slot: 2, ParentSlot: 1}, &ledger.Block{Slot: 2, ParentSlot: 1}
	for i := range items {
		wallets.Accounts = append(wallets.Accounts, ledger.AccountWrite{
			Pubkey: benchKey(i), Lamports: ledger.Lamports(2039280 + i), Owner: ledger.TokenProgram,
			RentEpoch: math.MaxUint64, Known: ledger.FieldsAll,
		})
		transactions.AddTransaction(ledger.Transaction{
			Signature: ledger.Signature{1: byte(i), 63: 1}, Success: ledger.Some(true), Fee: ledger.Some(ledger.Lamports(5000)),
			Accounts: []ledger.Pubkey{benchKey(i), benchKey(-i), ledger.TokenProgram},
		})
	}
	transactions.TransactionCount = items
	line := string(AppendEventLine(nil, wallets))
	with := func(fields string) string { return strings.ReplaceAll(line, `"token":false,"mint":false`, fields) }
	facts := fmt.Sprintf(`"token":{"mint":%q,"owner":%q,"amount":"5","state":"initialized",`+
		`"delegate":null,"delegated_amount":"0","close_authority":null,"is_native":false}`, benchKey(-1), benchKey(-2))
	for name, line := range map[string]string{
		"wallets":         line,
		"tokens as facts": with(facts),
		"tokens as data":  with(fmt.Sprintf(`"data":%q`, base64.StdEncoding.EncodeToString(data))),
		"transactions":    string(AppendEventLine(nil, transactions)),
	} {
		content := strings.Repeat(line, lines)
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(content)))
			b.ReportAllocs()
			for b.Loop() {
				reader := lineReader{data: new(nodejson.DataDecoder), out: &sink{emit: discard}}
				must(b, reader.run(b.Context(), bufio.NewReaderSize(strings.NewReader(content), readAheadBytes)))
			}
			b.ReportMetric(float64(b.N)*items*lines/b.Elapsed().Seconds(), "items/s")
		})
	}
}

// benchKey returns a key as evenly spread as real ones.
func benchKey(i int) ledger.Pubkey { return sha256.Sum256([]byte(strconv.Itoa(i))) }
