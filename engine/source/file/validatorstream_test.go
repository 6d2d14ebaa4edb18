package file

import (
	"crypto/sha256"
	"fmt"
	"testing"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/datatest"
	"ledgerd/engine/ledger/ledgertest"
)

const recordedStream = "streams/mainnet-398202772-398202821.geyser.bin.gz"

// F21: the recorded live stream is the recorded chain: each block builds on the one before, and what the slots came to is told in
// order. The pin is of event lines whose blocks and statuses were compared with what a protobuf decoder of its own read.
func TestRecordedValidatorStreamIsTheChain(t *testing.T) {
	s, log := open(t, datatest.Path(t, recordedStream))
	events, err := run(s, nil)
	must(t, err)
	lines, blocks := []byte(nil), 0
	var parent *ledger.Block
	for _, e := range events {
		if b, ok := e.(*ledger.Block); ok {
			if parent != nil && (b.PreviousBlockhash.Value != parent.Blockhash || b.Height.Value != parent.Height.Value+1) {
				t.Errorf("block %d does not build on the one before", b.Slot)
			}
			parent, e = b, b.WithoutWrites()
			blocks++
		}
		lines = AppendEventLine(lines, e)
	}
	const pin = "3881613eee66537b3b03a928ccd7f0d700b84a9ec49d84e3ad805130c8937383"
	ledgertest.Equal(t, fmt.Sprintf("%x", sha256.Sum256(lines)), pin, "the hash of what came")
	ledgertest.Equal(t, blocks, 49, "blocks")
	ledgertest.Contains(t, log.String(), "slots=1", "of a recording that ends before the last of 50 slots has its head, the log")
}

// F27: damage anywhere is told or ends the recording early; it makes up nothing.
func TestDamagedValidatorStreamMakesUpNothing(t *testing.T) {
	chain := map[ledger.Hash]ledger.Slot{}
	for _, e := range events(t, datatest.Path(t, recordedStream)) {
		if b, ok := e.(*ledger.Block); ok {
			chain[b.Blockhash] = b.Slot
		}
	}
	whole := datatest.Read(t, datatest.Path(t, recordedStream))[:200_000]
	for at := 0; at < len(whole); at += 1999 {
		s, _ := open(t, write(t, "stream", string(whole[:at])+"\xff\xff\xff\xff"+string(whole[at:])))
		events, err := run(s, nil)
		if err == nil {
			t.Errorf("damage at byte %d goes unnoticed", at)
		}
		for _, e := range events {
			if b, ok := e.(*ledger.Block); ok && chain[b.Blockhash] != b.Slot {
				t.Errorf("damage at byte %d makes up block %s", at, b.Blockhash)
			}
		}
	}
}
