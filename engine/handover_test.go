package engine

import (
	"testing"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/bubbletest"
	"ledgerd/engine/ledger/ledgertest"
	"ledgerd/engine/sequencer"
)

// TestWriterKnowsWhetherTheSourceSpeaksOfFinality has a node take over from one whose source said what is
// confirmed and final, or never did. With the first nothing becomes final by depth.
func TestWriterKnowsWhetherTheSourceSpeaksOfFinality(t *testing.T) {
	const depth = sequencer.FinalityDepth
	root := rootBlock(100, lamports(key(1), 5))
	c := append([]*ledger.Block{root}, chainOf(root, depth+20)...)
	nothing := &ledger.SlotStatus{Slot: 9999, Status: ledger.StatusConfirmed} // which no record tells
	type row struct {
		said  []ledger.Event    // after the first five blocks
		as    ledger.Commitment // as what all blocks come
		spoke bool
		final int // which block is final at the end
	}
	bubbletest.Each(t, map[string]row{
		"nothing":                    {nil, ledger.Processed, false, 20},
		"nothing, final by depth":    {events(c[5 : depth+5]...), ledger.Processed, false, 20},
		"confirmed":                  {[]ledger.Event{status(c[1], ledger.StatusConfirmed)}, ledger.Processed, true, 0},
		"final":                      {[]ledger.Event{status(c[2], ledger.StatusFinalized)}, ledger.Processed, true, 2},
		"dead":                       {[]ledger.Event{status(c[4], ledger.StatusDead), c[5]}, ledger.Processed, true, 0},
		"final, as deep as by depth": {append(append([]ledger.Event{nothing}, events(c[5:depth+4]...)...), status(c[3], ledger.StatusFinalized)), ledger.Processed, true, 3},
		"blocks are final":           {nil, ledger.Finalized, false, depth + 20},
	}, func(t *testing.T, tt row) {
		l := newSharedLedger()
		l.info = finite()
		for _, b := range c {
			b.Status = tt.as
		}
		first, second := writer(t, l, Config{Shards: 1}), standby(t, l, Config{Shards: 1})
		first.send(append(events(c[:5]...), tt.said...)...)
		second.mustLead()
		first.mustStop()
		for name, n := range map[string]clusterNode{"first": first, "second": second} {
			ledgertest.Equal(t, n.config.Dir.Statuses(), tt.spoke, "whether the %s writer knows that it spoke", name)
		}
		second.send(events(c[5:]...)...)
		ledgertest.Equal(t, second.Head().Tips[ledger.Finalized].Slot, c[tt.final].Slot, "the final slot at the end")
	})
}
