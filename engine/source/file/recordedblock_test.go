package file

import (
	"crypto/sha256"
	"fmt"
	"path/filepath"
	"testing"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/datatest"
)

// recordedBlocks are all recorded files with blocks in a form of a node. The hashes are of event lines whose events were
// compared with a second reading of each file, from plain maps and with another base58, when they were pinned.
var recordedBlocks = []struct {
	path                         string
	first                        ledger.Slot
	blocks, transactions, failed int
	hash                         string // the beginning of that of all event lines
}{
	{"blocks/devnet-270893658.json", 270893658, 1, 57, -1, "694dbd4ba9aee37d"},
	{"blocks/devnet-314167369.json", 314167369, 1, 18, 0, "9928128623bea5cb"},
	{"blocks/excerpt-mainnet-100000000.json", 100000000, 1, 10, 2, "650dac2edc17b4de"},
	{"blocks/excerpt-mainnet-100000000-jsonparsed.json", 100000000, 1, 10, 2, "650dac2edc17b4de"},
	{"blocks/excerpt-mainnet-154808473.json", 154808473, 1, 1, -1, "bbad1a36578fcbd5"},
	{"blocks/excerpt-mainnet-child-of-1021084.json", 1021085, 1, 15, 0, "2d808686893d043f"},
	{"blocks/mainnet-0-9.blocks.json", 0, 10, 34, 0, "892f43c1ddc58e32"},
	{"blocks/mainnet-10-19.blocks.json", 10, 10, 41, 0, "7a8dd8795020c726"},
	{"blocks/mainnet-254170887.json.gz", 254170887, 1, 602, 305, "3ac343b1ee67feee"},
	{"rpc/http/Blocks/GetBlockResponse.json", 79662905, 1, 2, -1, "3d94f109aed35a2d"},
}

func TestRecordedBlocksAreReadAsRecorded(t *testing.T) {
	for _, r := range recordedBlocks {
		t.Run(filepath.Base(r.path), func(t *testing.T) {
			path := datatest.Path(t, r.path)
			got := blocks(t, path)
			hash, line := sha256.New(), []byte(nil)
			transactions, failed := 0, 0
			for i, b := range got {
				line = AppendEventLine(nil, b)
				hash.Write(line)
				if b.Slot < r.first+ledger.Slot(i) || b.Status != ledger.Finalized || b.TransactionCount != uint64(len(b.Transactions)) {
					t.Errorf("block %d is %s and counts %d transactions", b.Slot, b.Status, b.TransactionCount)
				}
				transactions += len(b.Transactions)
				for i, tx := range b.Transactions {
					if tx.Success == ledger.Some(false) {
						failed++
					}
					if tx.Slot != b.Slot || tx.Time != b.Time || tx.Index != uint32(i) {
						t.Errorf("slot %d: transaction %d is stamped %d, %v, %d", b.Slot, i, tx.Slot, tx.Time, tx.Index)
					}
				}
			}
			if len(got) != r.blocks || transactions != r.transactions || (r.failed >= 0 && failed != r.failed) {
				t.Errorf("%d blocks, %d transactions, %d failed; want %d, %d and %d",
					len(got), transactions, failed, r.blocks, r.transactions, r.failed)
			}
			if sum := fmt.Sprintf("%x", hash.Sum(nil))[:16]; sum != r.hash {
				t.Errorf("hash %s, want %s; the last block is %s", sum, r.hash, line)
			}
		})
	}
}
