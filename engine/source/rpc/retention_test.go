package rpc

import (
	"testing"

	"ledgerd/engine/ledger"
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
