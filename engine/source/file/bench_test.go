package file

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"ledgerd/engine/ledger"
)

func discard(context.Context, ledger.Event) error { return nil }

// BenchmarkEventLines reads blocks of 1,000 whole accounts each.
func BenchmarkEventLines(b *testing.B) {
	const accounts = 1000
	var line strings.Builder
	fmt.Fprintf(&line, `{"type":"block","slot":2,"parent_slot":1,"blockhash":%q,"accounts":[`, testKey(1))
	for i := range accounts {
		k := ledger.Pubkey{byte(i), byte(i >> 8), 0x55, 31: 1}
		fmt.Fprintf(&line, `%s{"pubkey":%q,"lamports":%d,"owner":%q,"executable":false,"rent_epoch":18446744073709551615}`,
			strings.Repeat(",", min(i, 1)), k, i, ledger.TokenProgram)
	}
	line.WriteString("]}\n")
	b.SetBytes(int64(line.Len()))
	b.ReportAllocs()
	for b.Loop() {
		reader := lineReader{max: maxLineBytes, data: new(dataDecoder), out: &sink{emit: discard}}
		if err := reader.run(b.Context(), bufio.NewReaderSize(strings.NewReader(line.String()), readAheadBytes)); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)*accounts/b.Elapsed().Seconds(), "accounts/s")
}

// BenchmarkRecordedBlock reads a whole mainnet block of 602 transactions.
func BenchmarkRecordedBlock(b *testing.B) {
	content := string(unpackedFile(b, recorded(b, "blocks/mainnet-254170887.json.gz")))
	b.SetBytes(int64(len(content)))
	b.ReportAllocs()
	for b.Loop() {
		reader := jsonReader{log: slog.New(slog.DiscardHandler), data: new(dataDecoder), out: &sink{emit: discard}}
		if err := reader.run(b.Context(), bufio.NewReaderSize(strings.NewReader(content), readAheadBytes)); err != nil {
			b.Fatal(err)
		}
	}
}
