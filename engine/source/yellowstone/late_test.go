package yellowstone

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"ledgerd/engine/ledger"
)

// A step is a part of a stream, at most of the block at a slot.
type step func(n int) []Update

func hashAt(slot ledger.Slot, fork byte) ledger.Hash { return ledger.Hash{byte(slot), fork} }

// forked tells a block that writes an account, up to its being processed. It is the n-th step.
func forked(slot, parent ledger.Slot, fork, k byte) step {
	return func(n int) []Update {
		head := Head{Hash: hashAt(slot, fork), ParentSlot: parent, ParentHash: ledger.Some(hashAt(parent, 0))}
		return []Update{statusOf(slot, CreatedBank), late(slot, k, int(slot), uint64(10*n))(n)[0], headOf(slot, head), statusOf(slot, Processed)}
	}
}

func block(slot, parent ledger.Slot, k byte) step { return forked(slot, parent, 0, k) }

// late tells a write of a slot that leaves an account with so many lamports.
func late(slot ledger.Slot, k byte, lamports int, version uint64) step {
	return func(int) []Update {
		return []Update{accountOf(slot, ledger.AccountWrite{Pubkey: key(k), Lamports: ledger.Lamports(lamports)}, version)}
	}
}

func dead(slot ledger.Slot) step { return func(int) []Update { return []Update{statusOf(slot, Dead)} } }

// again is the begin of another stream.
func again(int) []Update { return nil }

// straight tells blocks in a row.
func straight(from, to ledger.Slot) (steps []step) {
	for slot := from; slot <= to; slot++ {
		steps = append(steps, block(slot, slot-1, 1))
	}
	return steps
}

// written returns the events: of blocks the accounts that they write, by key, with their lamports.
func (c *collector) written() string {
	var lines []string
	for _, e := range c.events {
		b, ok := e.(*ledger.Block)
		if !ok {
			lines = append(lines, fmt.Sprintf("%T", e))
			continue
		}
		line := fmt.Sprintf("%d:", b.Slot)
		slices.SortFunc(b.Accounts, func(x, y ledger.AccountWrite) int { return x.Pubkey.Compare(&y.Pubkey) })
		for i := range b.Accounts {
			line += fmt.Sprintf(" %d=%d", b.Accounts[i].Pubkey[0], b.Accounts[i].Lamports)
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, ", ")
}

// play tells steps.
func play(t *testing.T, live bool, steps ...step) (*Assembler, *collector) {
	a, c := newCollected(live)
	a.HasTransactions = false
	for n, s := range steps {
		updates := s(n + 1)
		if updates == nil {
			a.Reconnected()
		}
		mustFeed(t, a, updates...)
	}
	return a, c
}

// A write that comes after its block counts with those that build on it, and with no other.
func TestALateWriteStaysOnItsBranch(t *testing.T) {
	tests := map[string]struct {
		steps []step
		want  string
		late  uint64
	}{
		"with the next block": {
			[]step{block(100, 99, 1), late(100, 77, 5, 11), block(101, 100, 1), block(102, 101, 1)},
			"100: 1=100, 101: 1=101 77=5, 102: 1=102", 1,
		},
		"with each that builds on it": {
			[]step{block(100, 99, 1), late(100, 77, 5, 11), block(101, 100, 1), block(102, 100, 1), block(103, 99, 1)},
			"100: 1=100, 101: 1=101 77=5, 102: 1=102 77=5, 103: 1=103", 1,
		},
		"not where it is written anew": {
			[]step{block(100, 99, 1), late(100, 77, 5, 11), block(101, 100, 77), block(102, 101, 1)},
			"100: 1=100, 101: 77=101, 102: 1=102", 1,
		},
		"the newest of several": {
			[]step{block(100, 99, 1), late(100, 77, 5, 11), late(100, 77, 7, 13), late(100, 77, 6, 12), late(100, 1, 4, 9), block(101, 100, 2)},
			"100: 1=100, 101: 2=101 77=7", 3,
		},
		"when the next is sealed too": {
			[]step{block(100, 99, 1), block(101, 100, 1), block(102, 100, 77), late(100, 77, 5, 11), block(103, 101, 1), block(104, 102, 1)},
			"100: 1=100, 101: 1=101, 102: 77=102, 103: 1=103 77=5, 104: 1=104", 1,
		},
		"of a dead block": {
			[]step{block(100, 99, 1), dead(100), late(100, 77, 5, 11), block(101, 99, 1)},
			"100: 1=100, *ledger.SlotStatus, 101: 1=101", 0,
		},
		"of another block at its slot": {
			[]step{forked(100, 99, 3, 1), late(100, 77, 5, 11), again, block(100, 99, 1), block(101, 100, 1)},
			"100: 1=100, 100: 1=100, 101: 1=101", 1,
		},
		"over streams": {
			[]step{block(100, 99, 1), late(100, 77, 5, 11), again, block(101, 100, 1)},
			"100: 1=100, 101: 1=101 77=5", 1,
		},
		"over streams, and then it is in time": {
			[]step{block(100, 99, 1), late(100, 77, 5, 11), again, block(100, 99, 77), block(101, 100, 1)},
			"100: 1=100, 100: 77=100, 101: 1=101 77=100", 1,
		},
		"that comes again": {
			[]step{block(100, 99, 1), late(100, 1, 100, 10), block(101, 100, 2)},
			"100: 1=100, 101: 2=101", 0,
		},
		"of a block that is shown again": {
			[]step{block(100, 99, 1), late(100, 77, 5, 11), again, block(100, 99, 1), block(101, 100, 1)},
			"100: 1=100, 100: 1=100, 101: 1=101 77=5", 1,
		},
	}
	for name, tt := range tests {
		for _, live := range []bool{false, true} {
			if a, c := play(t, live, tt.steps...); c.written() != tt.want || a.Counts.Late != tt.late {
				t.Errorf("%s, live %v: %s with %d late, want %s with %d", name, live, c.written(), a.Counts.Late, tt.want, tt.late)
			}
		}
	}
}

// A stream that begins in the middle of a block shows writes again that an earlier stream showed in time.
func TestWritesOfABlockShownInPartAreNotLate(t *testing.T) {
	part := func(int) []Update {
		return []Update{headOf(100, Head{Hash: hashAt(100, 0), ParentSlot: 99}), statusOf(100, Processed)}
	}
	a, c := play(t, true, block(100, 99, 1), again, part, late(100, 77, 5, 11), block(101, 100, 1))
	if got := c.written(); got != "100: 1=100, 101: 1=101" || a.Counts.Late != 0 || a.Counts.Partial != 1 {
		t.Errorf("%s, %+v", got, a.Counts)
	}
}

// What is kept of late writes is bounded: the accounts of a block, and the blocks.
func TestLateWritesAreBounded(t *testing.T) {
	a, _ := play(t, true, block(100, 99, 1))
	for n := range 2 * keptLate {
		mustFeed(t, a, accountOf(100, ledger.AccountWrite{Pubkey: ledger.Pubkey{77, byte(n), byte(n >> 8)}, Lamports: 1}, 11))
	}
	if n := len(a.sealed[0].late.accounts); n != keptLate || a.Counts.Late != 2*keptLate {
		t.Errorf("%d are kept of %d", n, a.Counts.Late)
	}
	steps := slices.Concat(straight(100, 100+keptBlocks), []step{late(100, 77, 5, 11), block(101+keptBlocks, 100+keptBlocks, 2)})
	a, c := play(t, true, steps...)
	if c.written(); len(a.sealed) != keptBlocks || a.Counts.Late != 0 || len(c.events[len(c.events)-1].(*ledger.Block).Accounts) != 1 {
		t.Errorf("of %d blocks a write that is too late to tell was taken: %s", len(a.sealed), c.written())
	}
}
