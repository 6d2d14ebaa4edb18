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

// A node may show a wrong head for a slot, and its statuses name slots alone. In these tests the wrong block of a
// slot has fork 1.

func TestNothingIsFinalBeforeAnotherBuildsOnIt(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		node := newFakeNode(t, func(c *call) error {
			all := append(straight(101, 103), block{slot: 104, parent: 103, fork: 1}.messages()...)
			all = append(all, slotUpdate(104, yellowstone.Confirmed), slotUpdate(104, yellowstone.Finalized))
			if c.number > 0 {
				all = straight(101, 112)
			}
			if err := c.send(all...); err != nil || c.number > 0 {
				return err
			}
			time.Sleep(time.Second)
			return c.send(straight(105, 106)...)
		})
		out := &collector{until: "finalized 107"}
		if _, err := run(t, configFor(node), at(100), out, time.Minute); !errors.Is(err, errEnough) {
			t.Fatalf("Run: %v after %q", err, out.first(60))
		}
		if got := out.of("block"); got != "101 102 103 104.1 104 105 106 107 108 109 110 111" {
			t.Errorf("blocks %s", got)
		}
		if got := out.of("finalized"); got != "101 101 102 103 105 106 107" { // whose is the status of 104 nobody can say
			t.Errorf("finalized %s", got)
		}
	})
}

func TestFinalityWaitsForTheNextBlock(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		node := newFakeNode(t, func(c *call) error {
			all := append(straight(101, 103), slotUpdate(103, yellowstone.Finalized))
			if err := c.send(append(all, block{slot: 104, parent: 103}.messages()...)...); err != nil {
				return err
			}
			return c.hang()
		})
		out := &collector{until: "finalized 103"}
		if _, err := run(t, configFor(node), at(100), out, time.Minute); !errors.Is(err, errEnough) {
			t.Fatalf("Run: %v after %q", err, out.first(60))
		}
		if got := out.first(60); got[len(got)-2] != "block 104" {
			t.Errorf("it was told %q", got)
		}
	})
}

func TestTheRootIsABlockThatAnotherBuildsOn(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		node := newFakeNode(t, func(c *call) error {
			wrong := block{slot: 101, parent: 100, fork: 1}.messages()
			all := append(append(wrong, slotUpdate(101, yellowstone.Confirmed)), straight(102, 104)...)
			if c.number > 0 {
				all = straight(101, 106)
			}
			return c.send(all...)
		})
		out := &collector{until: "block 106"}
		if _, err := run(t, configFor(node), nil, out, time.Minute); !errors.Is(err, errEnough) {
			t.Fatalf("Run: %v after %q", err, out.first(60))
		}
		if got, want := out.of("block"), "102 103 104 105 106"; got != want {
			t.Errorf("blocks %s, want %s", got, want)
		}
	})
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

func TestTheRootIsEmittedWhenAnotherBuildsOnIt(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		node := newFakeNode(t, func(c *call) error {
			all := append(block{slot: 101, parent: 100}.messages(), slotUpdate(101, yellowstone.Confirmed))
			if err := c.send(append(all, block{slot: 102, parent: 101}.messages()...)...); err != nil {
				return err
			}
			return c.hang()
		})
		out := &collector{until: "block 102"}
		if _, err := run(t, configFor(node), nil, out, 3*time.Second); !errors.Is(err, errEnough) {
			t.Fatalf("Run: %v after %q", err, out.first(60))
		}
	})
}

func TestWhatIsInDoubtIsNotMeant(t *testing.T) {
	all := func(context.Context, ledger.Event) error { return nil }
	c := newChain(at(100), all, newMints(&Config{}), &upstream.Stats{}, 1<<20)
	confirmed := &ledger.SlotStatus{Slot: 101, Status: ledger.StatusConfirmed, Blockhash: ledger.Some(hashOf(101, 1))}
	if err := errors.Join(c.take(t.Context(), block{slot: 101, parent: 100, fork: 1}.filled()), c.take(t.Context(), confirmed)); err != nil {
		t.Fatal(err)
	}
	bare := &ledger.SlotStatus{Slot: 101, Status: ledger.StatusConfirmed}
	if _, ok := c.meant(bare); !ok {
		t.Error("a status of a slot whose block is confirmed is about that")
	}
	if !c.doubt() || c.doubt() {
		t.Error("there is one block to doubt, once")
	}
	if id, ok := c.meant(bare); ok {
		t.Errorf("the status is said to be about %v", id)
	}
}

// Of two that wait for the same parent, one is final when that comes: the other is of no use any more.
func TestWhatIsBesideTheFinalBlockIsNotEmitted(t *testing.T) {
	for range 20 { // they wait in no order
		var out []ledger.Slot
		final := false
		c := newChain(at(100), func(_ context.Context, e ledger.Event) error {
			switch e := e.(type) {
			case *ledger.Block:
				if out = append(out, e.Slot); final && e.Slot == 104 {
					t.Error("block 104 is emitted beside the final block 102")
				}
			case *ledger.SlotStatus:
				final = final || e.Status == ledger.StatusFinalized
			}
			return nil
		}, newMints(&Config{}), &upstream.Stats{}, 1<<20)
		for _, e := range []ledger.Event{
			block{slot: 103, parent: 102}.filled(), block{slot: 102, parent: 101}.filled(), block{slot: 104, parent: 101, fork: 1}.filled(),
			&ledger.SlotStatus{Slot: 102, Status: ledger.StatusFinalized, Blockhash: ledger.Some(hashOf(102, 0))},
			block{slot: 101, parent: 100}.filled(),
			&ledger.SlotStatus{Slot: 103, Status: ledger.StatusConfirmed, Blockhash: ledger.Some(hashOf(103, 0))},
		} {
			if err := c.take(t.Context(), e); err != nil {
				t.Fatal(err)
			}
		}
		if n := len(out); n < 3 || out[0] != 101 || c.root.slot != 102 {
			t.Errorf("blocks %v, the root is %v", out, c.root)
		}
		if c.bytes < 0 || len(c.waiting) == 0 && c.bytes != 0 {
			t.Errorf("%d bytes wait in %d blocks", c.bytes, len(c.waiting))
		}
	}
}

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
		if got := out.of("block"); got != "101 102 103 104.1 104 filled 105 filled 106 filled 107 filled 108 filled 109 filled 110 111 112 113 114" {
			t.Errorf("blocks %s", got)
		}
		if n := s.Upstream(); n.Errors[upstream.Equivocation] == 0 {
			t.Errorf("errors %v", n.Errors)
		}
	})
}
