package geyser

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/bubble"
	"ledgerd/engine/source/upstream"
	"ledgerd/engine/source/yellowstone"
)

// withDead returns what straight tells, with slots called dead right after they were processed.
func withDead(from, to ledger.Slot, dead ...ledger.Slot) (all []part) {
	for _, m := range straight(from, to) {
		all = append(all, m)
		for _, slot := range dead {
			if string(m) == string(slotUpdate(slot, yellowstone.Processed)) {
				all = append(all, slotUpdate(slot, yellowstone.Dead))
			}
		}
	}
	return all
}

// A node calls a block dead that its chain goes on from. When it, or a block on it, is confirmed it is on the chain again.
func TestABlockThatIsWronglyCalledDeadComesBack(t *testing.T) {
	dead := slotUpdate(104, yellowstone.Dead)
	tests := map[string]struct {
		first        []part // of the first session; the next one tells all again, or nothing where there is a Filler
		fills        bool
		blocks, dead string
	}{
		"two of them": {
			withDead(101, 108, 103, 104), false,
			"101 102 103 103 104 105 106 107 108 109 110 111 112", "103 104",
		},
		"what builds on it is filled": {
			append(straight(101, 104), dead), true,
			"101 102 103 104 104 105 filled 106 filled 107 filled 108 filled 109 110 111 112", "104",
		},
		"it is final by then": {
			append(straight(101, 108), dead), false,
			"101 102 103 104 105 106 107 108 109 110 111 112", "",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				node := newFakeNode(t, func(c *call) error {
					switch {
					case c.number == 0:
						return c.send(tt.first...)
					case tt.fills && c.from().Known:
						return status.Error(codes.OutOfRange, "too old")
					case tt.fills:
						return errors.Join(c.send(straight(109, 112)...), c.hang())
					}
					return errors.Join(c.send(append(straight(101, 112), dead)...), c.hang())
				})
				c := configFor(node)
				if tt.fills {
					c.Filler = &fillerFunc{fill: fillStraight}
				}
				out := &collector{}
				s, err := run(t, c, at(100), out, time.Minute)
				if !errors.Is(err, context.DeadlineExceeded) {
					t.Fatalf("Run: %v after %q", err, out.first(80))
				}
				if got := out.of("block"); got != tt.blocks {
					t.Errorf("blocks %s, want %s", got, tt.blocks)
				}
				if got := out.of("dead"); got != tt.dead {
					t.Errorf("dead %q, want %q", got, tt.dead)
				}
				if n := s.Upstream(); n.Gap.Open() || n.Dead == 0 {
					t.Errorf("%+v", n)
				}
			})
		})
	}
}

// A head that names slot 100 for its parent, which is of slot 101, would have 101 skipped: also where the stream
// began in the middle of that, so that it never comes whole.
func TestTheRootIsNotWhatNamesAnotherSlotForItsParent(t *testing.T) {
	hash, parent := hashOf(102, 0), hashOf(101, 0)
	wrong := part(nil).bytes(7, part(nil).number(1, 102).bytes(2, hash.AppendBase58(nil)).number(6, 100).bytes(7, parent.AppendBase58(nil)).number(8, 1))
	all := straight(101, 106)
	for i := range all {
		if string(all[i]) == string(block{slot: 102, parent: 101}.head()) {
			all[i] = wrong
		}
	}
	mute := slices.DeleteFunc(slices.Clone(all), func(p part) bool { return string(p) == string(slotUpdate(101, yellowstone.Confirmed)) })
	for name, first := range map[string][]part{"whole": mute, "from its middle on": mute[2:], "its end": mute[4:]} {
		t.Run(name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				node := newFakeNode(t, func(c *call) error {
					switch {
					case c.number == 0:
						return c.send(first...)
					case name != "whole" && c.number == 1:
						return status.Error(codes.Internal, "not now")
					}
					return c.send(straight(101, 106)...)
				})
				out := &collector{until: "block 106"}
				if _, err := run(t, configFor(node), nil, out, time.Minute); !errors.Is(err, errEnough) {
					t.Fatalf("Run: %v after %q", err, out.first(60))
				}
				if got := out.of("block"); got != "101 102 103 104 105 106" {
					t.Errorf("blocks %s", got)
				}
			})
		})
	}
}

// A node calls a wrong block confirmed, which the Filler does not know.
func TestAFillerThatKnowsNotTheConfirmedBlockIsAskedFromTheRoot(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		node := newFakeNode(t, func(c *call) error {
			all := append(straight(101, 103), block{slot: 104, parent: 103, fork: 1}.messages()...)
			all = append(all, slotUpdate(104, yellowstone.Confirmed))
			if c.number > 0 { // and nothing is shown again
				all = straight(110, 114)
			}
			if err := c.send(append(all, straight(110, 112)...)...); err != nil {
				return err
			}
			return c.hang()
		})
		filler := &fillerFunc{}
		filler.fill = func(after, upTo ledger.Slot, emit func(block) error) error {
			if after == 104 {
				return fmt.Errorf("slot 104: %w", upstream.ErrOtherChain)
			}
			return fillStraight(after, upTo, emit)
		}
		c := configFor(node)
		c.Filler = filler
		out := &collector{until: "finalized 110"}
		s, err := run(t, c, at(100), out, time.Minute)
		if !errors.Is(err, errEnough) {
			t.Fatalf("Run: %v after %q", err, out.first(60))
		}
		if got := fmt.Sprint(filler.questions()); got != "[104.104-109 100.100-109]" {
			t.Errorf("asked for %s", got)
		}
		if got := out.of("block"); got != "101 102 103 104.1 104 filled 105 filled 106 filled 107 filled 108 filled 109 filled 110 111" {
			t.Errorf("blocks %s", got)
		}
		if n := s.Upstream(); n.Errors[upstream.Equivocation] == 0 {
			t.Errorf("errors %v", n.Errors)
		}
	})
}
