package rpc

import (
	"strings"
	"testing"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/bubble"
	"ledgerd/engine/source/upstream"
)

// A block that does not say on which block it builds is believed to build on the one before only if the node has that one.
func TestABlockWithoutItsParentsHashIsChecked(t *testing.T) {
	nameless := fakeBlock{slot: 11, parent: 10, hash: hashOf("11")}
	answer := func(n *fakeNode) {
		n.blocks[11] = &nameless
		n.confirmed = 11
	}
	bubble.Test(t, func(t *testing.T) {
		n := startNode(t)
		n.add(9, 10)
		answer(n)
		n.add(11, 12)
		wantSlots(t, follow(t, New(n.config()), at(10), untilSlot(12)), 11, 12)
	})
	bubble.Test(t, func(t *testing.T) {
		n := startNode(t)
		n.add(9, 10)
		answer(n)
		r := &recorder{}
		err := New(n.config()).Run(t.Context(), &ledger.ResumePoint{Slot: 10, Blockhash: hashOf("other")}, r.emit)
		if err == nil || !strings.Contains(err.Error(), upstream.ErrOtherChain.Error()) || len(r.events) != 0 {
			t.Errorf("err = %v after %d events", err, len(r.events))
		}
	})
}
