package geyser

import (
	"encoding/binary"
	"fmt"
	"strings"
	"testing"
	"time"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/datatest"
	"ledgerd/engine/ledger/ledgertest"
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
	var last *ledger.Block
	var slots []string
	s := scenario{fresh: true, most: 3 * time.Second, script: stays(messages...)}
	s.config = func(c *Config) { c.NoTransactions = true }
	s.emitted = func(e ledger.Event) {
		if b, ok := e.(*ledger.Block); ok {
			if last != nil && (b.PreviousBlockhash.Value != last.Blockhash || b.ParentSlot != last.Slot || b.Height.Value != last.Height.Value+1) {
				t.Errorf("block %d does not build on block %d", b.Slot, last.Slot)
			}
			last, slots = b, append(slots, fmt.Sprint(b.Slot))
		}
	}
	s.run(t)
	const hash = "M4GcxeSCPAw9riPQQkFtgCJMt9GiFXnssu5GwvBx3bc"
	if last.Slot != 398202820 || last.Blockhash.String() != hash || last.Time.Value != 1770287058 || last.TransactionCount != 1405 {
		t.Errorf("the last block is %+v, want 398202820 with hash %s", last, hash)
	}
	ledgertest.Equal(t, s.of("confirmed"), strings.Join(slots[1:], " "), "what is confirmed: all but the first")
	ledgertest.Equal(t, len(slots), 48, "blocks")
}
