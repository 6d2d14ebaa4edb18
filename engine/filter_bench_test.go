package engine

import (
	"encoding/binary"
	"encoding/json"
	"testing"

	"ledgerd/engine/ledger/bloom"
	"ledgerd/engine/ledger/datatest"
	"ledgerd/engine/source/nodejson"
)

// BenchmarkFilterOfABlock makes the filter of a recorded block's addresses, and reports what it takes of memory: the lists of an address need
// nothing else.
func BenchmarkFilterOfABlock(b *testing.B) {
	var recorded nodejson.Block
	must(b, json.Unmarshal(datatest.Read(b, datatest.Path(b, "blocks/mainnet-254170887.json.gz")), &recorded))
	block, err := recorded.At(254170887, nil)
	must(b, err)
	var keys []uint64
	for _, t := range block.Transactions {
		for _, k := range t.Accounts {
			keys = append(keys, binary.LittleEndian.Uint64(k[:]))
		}
	}
	var filter bloom.Filter
	b.ReportAllocs()
	for b.Loop() {
		filter = bloom.Of(keys)
	}
	b.ReportMetric(float64(len(filter.Append(nil)))/float64(len(block.Transactions)), "B/transaction")
}
