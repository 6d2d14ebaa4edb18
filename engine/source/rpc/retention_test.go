package rpc

import (
	"context"
	"fmt"
	"testing"
	"time"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/ledgertest"
)

func TestListsThatCannotBeAreRefused(t *testing.T) {
	play(t, Config{}, func(t *testing.T, n *fakeNode, s *Source) {
		for _, wrong := range []string{"[12,11]", "[11,11]", "[9]", "[10,11,12]", "[1152921504606846977]", "null"} {
			n.fault = gives(wrong)
			if got, err := s.client.slots(t.Context(), 10, 2, ledger.Confirmed); err == nil || causeOf(err) != garbage {
				t.Errorf("%s: %v, err = %v", wrong, got, err)
			}
		}
	})
}

// A node that shows another branch with each call, as several behind a balancer may, is given up like one that does not have the next block.
func TestAFillFromANodeThatAlternatesIsGivenUp(t *testing.T) {
	play(t, Config{Accounts: AccountsNone}, func(t *testing.T, n *fakeNode, s *Source) {
		n.add(10, 11, 12)
		n.blocks[12].previous = hashOf("none")
		asked := 0
		n.fault = onBlock(11, func(*fakeCall) bool {
			asked++
			n.blocks[11].hash = hashOf(fmt.Sprint("11 as of call ", asked))
			return false
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		r := &recorder{}
		err := s.Fill(ctx, 10, hashOf("10"), 12, r.emit)
		ledgertest.ErrorSays(t, err, "cannot fill slots 11 to 12: getBlock: ", "the node alternates")
		if asked > 3*fillTries {
			t.Errorf("block 11 was asked for %d times", asked)
		}
	})
}
