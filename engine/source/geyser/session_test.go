package geyser

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/ledgertest"
	"ledgerd/engine/source/upstream"
)

// failure is what a Filler says that asked a node.
type failure struct {
	kind  upstream.Kind
	after time.Duration
}

func (f failure) Error() string             { return "it failed" }
func (f failure) Kind() upstream.Kind       { return f.kind }
func (f failure) RetryAfter() time.Duration { return f.after }

// A write that comes after its block counts as one of what the node sent wrongly, and is left out.
func TestAWriteAfterItsBlockIsCounted(t *testing.T) {
	late := accountUpdate(104, keyOf(7), keyOf(9), 5, 2000)
	s := scenario{most: time.Second, script: stays(slices.Concat(straight(101, 104), []part{late}, straight(105, 106))...)}
	s.emitted = func(e ledger.Event) {
		if b, ok := e.(*ledger.Block); ok {
			ledgertest.Equal(t, len(b.Accounts), 2, "what block %d wrote", b.Slot)
		}
	}
	s.run(t)
	ledgertest.Equal(t, s.source.Upstream().Errors[upstream.Garbage], 1, "late writes")
}

// What waits too long is told as what is too large, also where it stands beside what is wrong.
func TestWhatWaitsTooLongIsTooLarge(t *testing.T) {
	ledgertest.Equal(t, kindOf(fmt.Errorf("%w: %w", errWrong, ledger.ErrTooMuchWaits)), upstream.TooLarge, "the kind of the error")
}
