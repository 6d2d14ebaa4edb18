package yellowstone

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"ledgerd/engine/ledger"
)

// lateStream tells blocks of one write each, and writes behind them.
type lateStream struct {
	t       *testing.T
	a       *Assembler
	c       collector
	version uint64
}

func newLateStream(t *testing.T, live bool) *lateStream {
	s := &lateStream{t: t}
	s.a = NewAssembler(s.c.emit)
	s.a.Live = live
	return s
}

func hashAt(slot ledger.Slot, fork byte) ledger.Hash { return ledger.Hash{byte(slot), fork} }

// account tells a write of a slot that leaves an account with so many lamports.
func (s *lateStream) account(slot ledger.Slot, k byte, lamports int, version uint64) {
	s.t.Helper()
	w := ledger.AccountWrite{Pubkey: key(k), Lamports: ledger.Lamports(lamports)}
	if err := feed(s.t, s.a, accountMessage(slot, w, version, nil, false)); err != nil {
		s.t.Fatal(err)
	}
}

// block tells a block that writes an account, up to its being processed.
func (s *lateStream) block(slot, parent ledger.Slot, fork byte, k byte) {
	s.t.Helper()
	s.version += 10
	if err := feed(s.t, s.a, slotMessage(slot, CreatedBank)); err != nil {
		s.t.Fatal(err)
	}
	s.account(slot, k, int(slot), s.version)
	head := Head{Hash: hashAt(slot, 0), ParentSlot: parent, ParentHash: ledger.Some(hashAt(parent, 0))}
	head.Hash[1] = fork
	if err := feed(s.t, s.a, headMessage(slot, head), slotMessage(slot, Processed)); err != nil {
		s.t.Fatal(err)
	}
}

// told returns the events: of blocks the accounts that they write, by key, with their lamports.
func (s *lateStream) told() string {
	var lines []string
	for _, e := range s.c.events {
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

// A write that comes behind its block counts with those that build on it, and with no other.
func TestALateWriteStaysOnItsBranch(t *testing.T) {
	tests := map[string]struct {
		tell func(s *lateStream)
		want string
		late uint64
	}{
		"with the next block": {func(s *lateStream) {
			s.block(100, 99, 0, 1)
			s.account(100, 77, 5, 11)
			s.block(101, 100, 0, 1)
			s.block(102, 101, 0, 1)
		}, "100: 1=100, 101: 1=101 77=5, 102: 1=102", 1},
		"with each that builds on it": {func(s *lateStream) {
			s.block(100, 99, 0, 1)
			s.account(100, 77, 5, 11)
			s.block(101, 100, 0, 1)
			s.block(102, 100, 0, 1)
			s.block(103, 99, 0, 1)
		}, "100: 1=100, 101: 1=101 77=5, 102: 1=102 77=5, 103: 1=103", 1},
		"not where it is written anew": {func(s *lateStream) {
			s.block(100, 99, 0, 1)
			s.account(100, 77, 5, 11)
			s.block(101, 100, 0, 77)
			s.block(102, 101, 0, 1)
		}, "100: 1=100, 101: 77=101, 102: 1=102", 1},
		"the newest of several": {func(s *lateStream) {
			s.block(100, 99, 0, 1)
			s.account(100, 77, 5, 11)
			s.account(100, 77, 7, 13)
			s.account(100, 77, 6, 12)
			s.account(100, 1, 4, 9) // older than what the block has
			s.block(101, 100, 0, 2)
		}, "100: 1=100, 101: 2=101 77=7", 3},
		"when the next is sealed too": {func(s *lateStream) {
			s.block(100, 99, 0, 1)
			s.block(101, 100, 0, 1)
			s.block(102, 100, 0, 77)
			s.account(100, 77, 5, 11)
			s.block(103, 101, 0, 1)
			s.block(104, 102, 0, 1)
		}, "100: 1=100, 101: 1=101, 102: 77=102, 103: 1=103 77=5, 104: 1=104", 1},
		"of a dead block": {func(s *lateStream) {
			s.block(100, 99, 0, 1)
			if err := feed(t, s.a, slotMessage(100, Dead)); err != nil {
				t.Fatal(err)
			}
			s.account(100, 77, 5, 11)
			s.block(101, 99, 0, 1)
		}, "100: 1=100, *ledger.SlotStatus, 101: 1=101", 0},
		"of another block at its slot": {func(s *lateStream) {
			s.block(100, 99, 3, 1)
			s.account(100, 77, 5, 11)
			s.a.Reconnected()
			s.block(100, 99, 0, 1)
			s.block(101, 100, 0, 1)
		}, "100: 1=100, 100: 1=100, 101: 1=101", 1},
		"over streams": {func(s *lateStream) {
			s.block(100, 99, 0, 1)
			s.account(100, 77, 5, 11)
			s.a.Reconnected()
			s.block(101, 100, 0, 1)
		}, "100: 1=100, 101: 1=101 77=5", 1},
		"over streams, and then it is in time": {func(s *lateStream) {
			s.block(100, 99, 0, 1)
			s.account(100, 77, 5, 11)
			s.a.Reconnected()
			s.block(100, 99, 0, 77)
			s.block(101, 100, 0, 1)
		}, "100: 1=100, 100: 77=100, 101: 1=101 77=100", 1},
		"too late to tell": {func(s *lateStream) {
			s.block(100, 99, 0, 1)
			for slot := ledger.Slot(101); slot <= 100+versionedBlocks; slot++ {
				s.block(slot, slot-1, 0, 1)
			}
			s.account(100, 1, 100, 10)
			s.block(101+versionedBlocks, 100+versionedBlocks, 0, 2)
			s.c.events = s.c.events[len(s.c.events)-1:]
		}, fmt.Sprintf("%d: 2=%d", 101+versionedBlocks, 101+versionedBlocks), 0},
	}
	for name, tt := range tests {
		for _, live := range []bool{false, true} {
			s := newLateStream(t, live)
			tt.tell(s)
			if got := s.told(); got != tt.want || s.a.Counts.Late != tt.late {
				t.Errorf("%s, live %v: %s with %d late, want %s with %d", name, live, got, s.a.Counts.Late, tt.want, tt.late)
			}
		}
	}
}

// What is kept of late writes is bounded, and ends with finality.
func TestLateWritesAreBounded(t *testing.T) {
	s := newLateStream(t, true)
	s.block(100, 99, 0, 1)
	for n := range 2 * keptLate {
		w := ledger.AccountWrite{Pubkey: ledger.Pubkey{77, byte(n), byte(n >> 8)}, Lamports: 1}
		if err := feed(t, s.a, accountMessage(100, w, 11, nil, false)); err != nil {
			t.Fatal(err)
		}
	}
	if len(s.a.late) != keptLate || s.a.Counts.Late != 2*keptLate {
		t.Errorf("%d are kept of %d", len(s.a.late), s.a.Counts.Late)
	}
	if err := feed(t, s.a, slotMessage(101+keptSlots, Finalized)); err != nil {
		t.Fatal(err)
	}
	if len(s.a.late) != 0 {
		t.Errorf("%d are kept for blocks that never come", len(s.a.late))
	}
}
