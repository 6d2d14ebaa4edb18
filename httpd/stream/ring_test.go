package stream

import (
	"sync"
	"testing"

	"ledgerd/engine/ledger"
)

// Whoever reads nothing is not lapped while no more than the ring promises waits for it.
func TestARingHoldsWhatItPromises(t *testing.T) {
	const promised = 1 << 20
	inMemory(t, func(c *Config) { c.RingBytes = promised }, func(n *node) {
		c := n.dial("?extended=true")
		for told := 0; told < promised; {
			slot := n.script.nextSlot()
			for _, frame := range framesOf(n.script.append(slot, accounts(0, 50, ledger.Lamports(slot))...)) {
				told += len(frame)
			}
			n.script.publish()
		}
		if got := readUpdates(n, c.settle()); ledger.Seq(len(got)) != n.script.seq {
			n.Errorf("%d updates came, want %d", len(got), n.script.seq)
		}
	})
}

// inTurns returns a function that lets some blocks of two accounts come, beside the test. It waits
// until those of the call before the last have come.
func (n *node) inTurns(blocks int) (turn func()) {
	turns := make(chan struct{}, 1)
	var publishing sync.WaitGroup
	publishing.Go(func() {
		for range turns {
			for range blocks {
				slot := n.script.nextSlot()
				n.script.block(slot, account(1, ledger.Lamports(slot), programA), account(2, ledger.Lamports(slot), programB))
			}
		}
	})
	n.Cleanup(func() {
		close(turns)
		publishing.Wait()
	})
	return func() { turns <- struct{}{} }
}

// Whoever goes between everything and names hears each update once, in order, while blocks come. And
// answers stand where they belong among the frames: they name the seq of the one before.
func TestTurnsBetweenRingAndNamesAreExact(t *testing.T) {
	n := serve(t, nil)
	n.script.block(1)
	c := n.dial("?extended=true")
	turn := n.inTurns(50)
	next, last := ledger.Seq(1), ledger.Seq(0)
	for round := range 45 { // within the budget of messages
		turn()
		if round%2 == 0 { // of the same accounts, by name
			c.send(`{"type":"subscribe","id":1,"programs":%s}`, list(programA, programB))
		} else {
			c.send(`{"type":"subscribe","id":1}`)
		}
		c.send(`{"type":"ping"}`)
		for kind := ""; kind != "pong"; {
			f := parse(t, c.next())
			switch f.Type {
			case "account_update":
				if f.Seq != next {
					t.Fatalf("round %d: seq %d came, want %d", round, f.Seq, next)
				}
				next++
			case "subscribed", "pong":
				if f.Seq != last {
					t.Fatalf("round %d: %s names seq %d after a frame of %d", round, f.Type, f.Seq, last)
				}
			}
			kind, last = f.Type, f.Seq
		}
	}
	if next < 1000 {
		t.Errorf("only %d updates came", next-1)
	}
}
