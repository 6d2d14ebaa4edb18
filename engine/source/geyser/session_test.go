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

// A write that comes after its block counts as one of what the node sent wrongly, and comes with the next block. Those that are too many count as
// too large.
func TestAWriteAfterItsBlockIsCounted(t *testing.T) {
	var late []part
	for n := range 1026 {
		late = append(late, accountUpdate(104, ledger.Pubkey{byte(n), byte(n >> 8), 1}, keyOf(9), 5, 2000))
	}
	written := 0
	s := scenario{most: time.Second, script: stays(slices.Concat(straight(101, 104), late, block{slot: 105, parent: 104}.messages(), []part{late[0]}, straight(106, 106))...)}
	s.emitted = func(e ledger.Event) {
		if b, ok := e.(*ledger.Block); ok && b.Slot == 105 {
			written = len(b.Accounts)
		}
	}
	s.run(t)
	n := s.source.Upstream().Errors
	ledgertest.Equal(t, fmt.Sprint(n[upstream.Garbage], n[upstream.TooLarge]), "1027 2", "late writes, and those of them that are lost")
	ledgertest.Equal(t, written, 2+1024, "what the block after them wrote")
}

// What waits too long is told as what is too large, also where it stands beside what is wrong.
func TestWhatWaitsTooLongIsTooLarge(t *testing.T) {
	ledgertest.Equal(t, kindOf(fmt.Errorf("%w: %w", errWrong, ledger.ErrTooMuchWaits)), upstream.TooLarge, "the kind of the error")
}
