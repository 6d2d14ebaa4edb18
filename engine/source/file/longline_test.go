package file

import (
	"runtime"
	"strings"
	"testing"

	"ledgerd/engine/ledger/ledgertest"
	"ledgerd/engine/source/nodejson"
)

// F27: the memory that a line takes, with what is garbage early, is bounded by its length, whatever it holds most of.
func TestLongLinesAllocateInProportion(t *testing.T) {
	const most = 1 << 30 / MaxLineBytes
	size := ledgertest.Sample(16, 4, 2) << 20
	k := strings.Repeat("1", 32)
	account := `{"pubkey":"` + k + `","lamports":0`
	accounts, transactions := `{"type":"accounts","slot":1,"accounts":[`, `{"type":"block","slot":1,"parent_slot":0,"blockhash":"`+k+`","transactions":[`
	for name, tt := range map[string]struct{ front, item, end string }{
		"accounts":        {accounts, account + "}", "]}"},
		"tokens":          {accounts, account + `,"token":{"mint":"` + k + `","amount":"0"}}`, "]}"},
		"mints":           {accounts, account + `,"mint":{"decimals":0}}`, "]}"},
		"mints alone":     {accounts, `{"pubkey":"` + k + `","mint":{"decimals":0}}`, "]}"},
		"transactions":    {transactions, `{"signature":"` + k + k + `"}`, "]}"},
		"keys":            {transactions + `{"signature":"` + k + k + `","accounts":[`, `"` + k + `"`, "]}]}"},
		"unknown objects": {`{"type":"slot","slot":5,"status":"dead","x":[`, "{}", "]}"},
		"empty accounts":  {accounts, "{}", "]}"},
	} {
		line := []byte(tt.front + strings.Repeat(tt.item+",", size/len(tt.item)) + tt.item + tt.end)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := decodeLine(line, new(nodejson.DataDecoder))
		runtime.ReadMemStats(&after)
		times := float64(after.TotalAlloc-before.TotalAlloc) / float64(len(line))
		if times > most || (err != nil) != (name == "empty accounts") {
			t.Errorf("%s: allocates %.1f times the line, want at most %d; err = %v", name, times, most, err)
		}
	}
}
