package file

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"testing"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/datatest"
	"ledgerd/engine/source/nodejson"
)

func discard(context.Context, ledger.Event) error { return nil }

// BenchmarkEventLines reads lines of 1,000 accounts each, as a file of many of them is read.
func BenchmarkEventLines(b *testing.B) {
	const accounts, lines = 1000, 16
	facts := func(mint, wallet string) string {
		return fmt.Sprintf(`"token":{"mint":%q,"owner":%q,"amount":"5","state":"initialized","delegate":null,"delegated_amount":"0","close_authority":null,"is_native":false}`, mint, wallet)
	}
	data := func(mint, wallet ledger.Pubkey) string {
		raw := make([]byte, 165)
		copy(raw, mint[:])
		copy(raw[32:], wallet[:])
		raw[64], raw[108] = 5, byte(ledger.TokenInitialized)
		return fmt.Sprintf(`"data":%q`, base64.StdEncoding.EncodeToString(raw))
	}
	for name, more := range map[string]func(mint, wallet ledger.Pubkey) string{
		"wallets":           func(_, _ ledger.Pubkey) string { return `"token":false,"mint":false` },
		"tokens as facts":   func(mint, wallet ledger.Pubkey) string { return facts(mint.String(), wallet.String()) },
		"tokens as data":    data,
		"wallets, escaped":  func(_, _ ledger.Pubkey) string { return `"\u0074oken":false,"mint":false` },
		"tokens, a new key": func(mint, wallet ledger.Pubkey) string { return `"colour":7,` + facts(mint.String(), wallet.String()) },
	} {
		var line strings.Builder
		fmt.Fprintf(&line, `{"type":"block","slot":2,"parent_slot":1,"blockhash":%q,"accounts":[`, testKey(1))
		for i := range accounts {
			key, mint, wallet := benchKey(i), benchKey(-1-i%20), benchKey(-100-i)
			fmt.Fprintf(&line, `%s{"pubkey":%q,"lamports":%d,"owner":%q,"executable":false,"rent_epoch":18446744073709551615,%s}`,
				strings.Repeat(",", min(i, 1)), key, 2039280+i, ledger.TokenProgram, more(mint, wallet))
		}
		line.WriteString("]}\n")
		content := strings.Repeat(line.String(), lines)
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(content)))
			b.ReportAllocs()
			for b.Loop() {
				reader := lineReader{max: maxLineBytes, data: new(nodejson.DataDecoder), out: &sink{emit: discard}}
				if err := reader.run(b.Context(), bufio.NewReaderSize(strings.NewReader(content), readAheadBytes)); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.N)*accounts*lines/b.Elapsed().Seconds(), "accounts/s")
		})
	}
}

// benchKey returns a key as evenly spread as real ones.
func benchKey(i int) ledger.Pubkey { return sha256.Sum256([]byte(strconv.Itoa(i))) }

// BenchmarkRecordedBlock reads a whole mainnet block of 602 transactions.
func BenchmarkRecordedBlock(b *testing.B) {
	content := string(datatest.Read(b, datatest.Path(b, "blocks/mainnet-254170887.json.gz")))
	b.SetBytes(int64(len(content)))
	b.ReportAllocs()
	for b.Loop() {
		reader := jsonReader{log: slog.New(slog.DiscardHandler), data: new(nodejson.DataDecoder), out: &sink{emit: discard}}
		if err := reader.run(b.Context(), bufio.NewReaderSize(strings.NewReader(content), readAheadBytes)); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkAppendEventLine writes base state of token accounts, as export does.
func BenchmarkAppendEventLine(b *testing.B) {
	const accounts = 1000
	state := &ledger.BaseState{Slot: 2}
	for i := range accounts {
		k := ledger.Pubkey{byte(i), byte(i >> 8), 0x55, 31: 1}
		state.Accounts = append(state.Accounts, ledger.AccountWrite{
			Pubkey: k, Lamports: 2039280, Owner: ledger.TokenProgram, RentEpoch: 1<<64 - 1, Known: ledger.FieldsShown | ledger.FieldToken,
			Token: &ledger.TokenAccount{Mint: k, Owner: k, Amount: 5, Details: ledger.Some(ledger.TokenDetails{State: ledger.TokenInitialized})},
		})
	}
	line := AppendEventLine(nil, state)
	b.SetBytes(int64(len(line)))
	b.ReportAllocs()
	for b.Loop() {
		line = AppendEventLine(line[:0], state)
	}
	b.ReportMetric(float64(b.N)*accounts/b.Elapsed().Seconds(), "accounts/s")
}
