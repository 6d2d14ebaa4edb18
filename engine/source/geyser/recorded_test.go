package geyser

import (
	"encoding/binary"
	"fmt"
	"strings"
	"testing"
	"time"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/datatest"
)

// F21: a validator's recorded stream, told live, is the recorded chain: each block builds on the one before, up to the
// newest that is whole.
func TestRecordedStreamIsTheRecordedChain(t *testing.T) {
	raw := datatest.Read(t, datatest.Path(t, "streams/mainnet-398202772-398202821.geyser.bin.gz"))
	var messages []part
	for len(raw) > 0 {
		end := 4 + binary.BigEndian.Uint32(raw)
		messages, raw = append(messages, raw[4:end]), raw[end:]
	}
	var blocks []*ledger.Block
	s := scenario{fresh: true, most: 3 * time.Second, script: stays(messages...)}
	s.config = func(c *Config) { c.NoTransactions = true }
	s.emitted = func(e ledger.Event) {
		b, ok := e.(*ledger.Block)
		if !ok {
			return
		}
		if n := len(blocks); n > 0 {
			before := blocks[n-1]
			if b.PreviousBlockhash.Value != before.Blockhash || b.ParentSlot != before.Slot || b.Height.Value != before.Height.Value+1 {
				t.Errorf("block %d does not build on block %d", b.Slot, before.Slot)
			}
		}
		blocks = append(blocks, b)
	}
	s.run(t)
	if len(blocks) != 48 {
		t.Fatalf("%d blocks came, want 48", len(blocks))
	}
	const hash = "M4GcxeSCPAw9riPQQkFtgCJMt9GiFXnssu5GwvBx3bc"
	if last := blocks[47]; last.Slot != 398202820 || last.Blockhash.String() != hash || last.Time.Value != 1770287058 || last.TransactionCount != 1405 {
		t.Errorf("the last block is %+v, want 398202820 with hash %s", last, hash)
	}
	var confirmed []string
	for _, b := range blocks[1:] {
		confirmed = append(confirmed, fmt.Sprint(b.Slot))
	}
	if got, want := s.of("confirmed"), strings.Join(confirmed, " "); got != want {
		t.Errorf("confirmed %s, want %s", got, want)
	}
}
