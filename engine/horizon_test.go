package engine

import (
	"testing"
	"testing/synctest"
	"time"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/bubbletest"
	"ledgerd/engine/sequencer"
	"ledgerd/snapshot/vfs/vfstest"
)

// finalChain returns n blocks on a parent and the status that makes each of them final.
func finalChain(parent *ledger.Block, n int) (tip *ledger.Block, shown []ledger.Event) {
	for _, b := range chainOf(parent, n) {
		tip = b
		shown = append(shown, b, status(b, ledger.StatusFinalized))
	}
	return tip, shown
}

// closedLongAgo returns a chain on root in which an account is closed, is named by older base state when its closing is older than
// five slots, and is opened on a block that another replaces.
func closedLongAgo(root *ledger.Block) (shown []ledger.Event) {
	opened := child(root, 101, 0, lamports(key(2), 5), lamports(key(3), 5))
	closed := child(opened, 102, 0, lamports(key(2), 0), lamports(key(3), 0))
	tip, more := finalChain(closed, 100)
	shown = append(shown, opened, closed, status(closed, ledger.StatusFinalized))
	shown = append(shown, more...)
	undone := child(tip, tip.Slot+1, 0, lamports(key(3), 6))
	shown = append(shown, &ledger.BaseState{Slot: 101, Accounts: []ledger.AccountWrite{lamports(key(2), 7)}}, undone)
	_, more = finalChain(child(tip, tip.Slot+2, 1), 40)
	return append(append(shown, child(tip, tip.Slot+2, 1)), more...)
}

// F10: TestClosingIsForgottenAtTheSameRecord closes an account, lets its closing expire, and learns older base state of it: before anything
// is folded, after everything is, and in a replay it leads to the same state, whatever the setting of the node that replays.
func TestClosingIsForgottenAtTheSameRecord(t *testing.T) {
	for name, slow := range map[string]bool{"nothing is folded": false, "all is folded": true} {
		t.Run(name, func(t *testing.T) {
			bubbletest.Test(t, func(t *testing.T) {
				disk := vfstest.NewMemory()
				n, root := diskNode(t, disk, Config{Retention: sequencer.Retention{Slots: 5, Bytes: 1 << 30}})
				for _, e := range closedLongAgo(root) {
					if n.send(e); slow {
						time.Sleep(foldAfter)
					}
				}
				want := n.Head()
				for _, slots := range []ledger.Slot{5, 2, 9000} {
					left := disk.Crash(1, 1)
					again := startSource(t, nil, onDisk(t, left, Config{Shards: 3, Retention: sequencer.Retention{Slots: slots, Bytes: 1 << 30}}))
					synctest.Wait()
					if again.hasEnded() {
						t.Fatalf("%d slots: %v", slots, again.err)
					}
					got := again.Head()
					if got.StateHash != want.StateHash || got.Tips != want.Tips {
						t.Fatalf("%d slots: stands at %+v, want %+v", slots, got, want)
					}
					a, _, err := again.Account(ledger.Query{}, key(2))
					if err != nil || a.Lamports != 7 {
						t.Errorf("%d slots: the account has %d lamports, %v, want 7", slots, a.Lamports, err)
					}
				}
				n.mustStop()
			})
		})
	}
}
