package file

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/datatest"
)

const recordedStream = "streams/mainnet-398202772-398202821.geyser.bin.gz"

// F21: the recorded live stream is the recorded chain: each block builds on the one before, and what the slots came to is told in
// order. The pin is of what the messages say, read by a protobuf decoder of its own when it was made.
func TestRecordedValidatorStreamIsTheChain(t *testing.T) {
	s, log := open(t, datatest.Path(t, recordedStream))
	events, err := run(s, nil)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	var parent *ledger.Block
	for _, e := range events {
		switch e := e.(type) {
		case *ledger.Block:
			lines = append(lines, fmt.Sprintf("block %d %s on %d %s at %d, height %d, %d transactions",
				e.Slot, e.Blockhash, e.ParentSlot, e.PreviousBlockhash.Value, e.Time.Value, e.Height.Value, e.TransactionCount))
			if parent != nil && (e.PreviousBlockhash.Value != parent.Blockhash || e.Height.Value != parent.Height.Value+1) {
				t.Errorf("block %d does not build on the one before", e.Slot)
			}
			parent = e
		case *ledger.SlotStatus:
			line := fmt.Sprintf("slot %d is %s", e.Slot, e.Status)
			if e.Blockhash.Known {
				line += " as " + e.Blockhash.Value.String()
			}
			lines = append(lines, line)
		}
	}
	text := strings.Join(lines, "\n")
	const pin = "287a8ec696b7075695b5e4efb40f7bd53824f426dbdaee2043d030a23e3bb832"
	if got := fmt.Sprintf("%x", sha256.Sum256([]byte(text))); got != pin || strings.Count(text, "block ") != 49 {
		t.Errorf("the hash of what came is %s, want %s, of 49 blocks:\n%s", got, pin, text)
	}
	if !strings.Contains(log.String(), "slots=1") {
		t.Errorf("the log says %q; the recording ends before the last of 50 slots has its head", log)
	}
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
	for at := 0; at < len(whole); at += 997 {
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
