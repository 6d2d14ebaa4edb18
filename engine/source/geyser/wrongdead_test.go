package geyser

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
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

// A node calls a block dead that its chain goes on from. When that is confirmed the block is emitted again, whether
// the node shows it again, with or without its wrong word, or a Filler does.
func TestABlockThatIsWronglyCalledDeadIsEmittedAgain(t *testing.T) {
	tests := map[string]struct {
		first  []part               // of the first session
		script func(c *call) []part // of the later ones
		fills  bool                 // there is who fills gaps
		blocks string
	}{
		"shown again with the same word": {
			first: withDead(101, 108, 104), script: func(*call) []part { return withDead(101, 112, 104) },
			blocks: "101 102 103 104 104 105 106 107 108 109 110 111 112",
		},
		"shown again without it": {
			first: withDead(101, 108, 104), script: func(*call) []part { return straight(101, 112) },
			blocks: "101 102 103 104 104 105 106 107 108 109 110 111 112",
		},
		"two of them": {
			first: withDead(101, 108, 103, 104), script: func(*call) []part { return withDead(101, 112, 103, 104) },
			blocks: "101 102 103 103 104 105 106 107 108 109 110 111 112",
		},
		"confirmed in a later session": {
			first: append(straight(101, 104), slotUpdate(104, yellowstone.Dead)), script: func(*call) []part { return straight(103, 112) },
			blocks: "101 102 103 104 104 105 106 107 108 109 110 111 112",
		},
		"called dead again in the end": {
			first: withDead(101, 108, 104), script: func(c *call) []part {
				return append(straight(101, 112), slotUpdate(104, yellowstone.Dead))
			},
			blocks: "101 102 103 104 104 105 106 107 108 109 110 111 112",
		},
		"final by then": {
			first: append(straight(101, 108), slotUpdate(104, yellowstone.Dead)), script: func(*call) []part {
				return append(straight(103, 110), append(block{slot: 111, parent: 110}.messages(), block{slot: 112, parent: 111}.messages()...)...)
			},
			blocks: "101 102 103 104 105 106 107 108 109 110 111 112",
		},
		"filled": {
			first: withDead(101, 108, 104), fills: true, script: func(c *call) []part {
				if c.from().Known {
					return nil
				}
				return straight(109, 112)
			},
			blocks: "101 102 103 104 104 filled 105 filled 106 filled 107 filled 108 filled 109 110 111 112",
		},
		"filled, and nothing was shown of it again": {
			first: append(straight(101, 104), slotUpdate(104, yellowstone.Dead)), fills: true, script: func(c *call) []part {
				if c.from().Known {
					return nil
				}
				return straight(109, 112)
			},
			blocks: "101 102 103 104 104 filled 105 filled 106 filled 107 filled 108 filled 109 110 111 112",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				node := newFakeNode(t, func(c *call) error {
					all := tt.first
					if c.number > 0 {
						if all = tt.script(c); all == nil {
							return status.Error(codes.OutOfRange, "too old")
						}
					}
					if err := c.send(all...); err != nil || c.number == 0 {
						return err
					}
					return c.hang()
				})
				c := configFor(node)
				if tt.fills {
					c.Filler = &fillerFunc{fill: fillStraight}
				}
				out := &collector{until: "block 112"}
				s, err := run(t, c, at(100), out, 5*time.Minute)
				if !errors.Is(err, errEnough) {
					t.Fatalf("Run: %v after %q", err, out.first(80))
				}
				if got := out.of("block"); got != tt.blocks {
					t.Errorf("blocks %s, want %s", got, tt.blocks)
				}
				dead := "104"
				switch name {
				case "two of them":
					dead = "103"
				case "final by then":
					dead = ""
				}
				if got := out.of("dead"); got != dead {
					t.Errorf("dead %q, want %q", got, dead)
				}
				if n := s.Upstream(); n.Gap.Open() || n.Dead == 0 {
					t.Errorf("%+v", n)
				}
			})
		})
	}
}

// What was forgiven is remembered up to the root, and no longer.
func TestWhatWasForgivenIsForgottenBelowTheRoot(t *testing.T) {
	c := newChain(at(100), func(context.Context, ledger.Event) error { return nil }, newMints(&Config{}), &upstream.Stats{}, 1<<20)
	said := func(slot ledger.Slot, s ledger.Status) *ledger.SlotStatus {
		return &ledger.SlotStatus{Slot: slot, Status: s, Blockhash: ledger.Some(hashOf(slot, 0))}
	}
	show := func(slots ...ledger.Slot) {
		for _, slot := range slots {
			if err := c.take(t.Context(), block{slot: slot, parent: slot - 1}.filled()); err != nil {
				t.Fatal(err)
			}
		}
	}
	show(101, 102, 103)
	for _, e := range []ledger.Event{said(101, ledger.StatusDead), block{slot: 104, parent: 103}.filled()} {
		if err := c.take(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	if len(c.gaveUp) != 4 {
		t.Errorf("%d blocks are given up, want 4", len(c.gaveUp))
	}
	if err := c.take(t.Context(), said(102, ledger.StatusConfirmed)); !errors.Is(err, errNotDead) {
		t.Fatalf("%v, want %v", err, errNotDead)
	}
	if len(c.gaveUp) != 0 || !slices.Equal(sortedSlots(c.forgiven), []ledger.Slot{101, 102}) {
		t.Errorf("%v are given up, %v forgiven", c.gaveUp, c.forgiven)
	}
	show(101, 102, 103, 104)
	for _, slot := range []ledger.Slot{101, 102, 103} {
		if err := c.take(t.Context(), said(slot, ledger.StatusFinalized)); err != nil {
			t.Fatal(err)
		}
	}
	if len(c.forgiven) != 0 || c.root.slot != 103 {
		t.Errorf("%v are forgiven above root %d", c.forgiven, c.root.slot)
	}
}

// What a Filler shows is confirmed: what builds on it is taken at once, and it is not called dead again.
func TestWhatWasFilledIsForgiven(t *testing.T) {
	var out []string
	c := newChain(at(100), func(_ context.Context, e ledger.Event) error {
		switch e := e.(type) {
		case *ledger.Block:
			out = append(out, fmt.Sprint(e.Slot))
		case *ledger.SlotStatus:
			out = append(out, fmt.Sprint(e.Status, " ", e.Slot))
		}
		return nil
	}, newMints(&Config{}), &upstream.Stats{}, 1<<20)
	b, next := block{slot: 101, parent: 100}.filled(), block{slot: 102, parent: 101}.filled()
	dead := idOf(b).status(ledger.StatusDead)
	if err := errors.Join(
		c.take(t.Context(), b), c.take(t.Context(), dead), c.take(t.Context(), next),
		c.takeFilled(t.Context(), b), c.take(t.Context(), next), c.take(t.Context(), dead),
	); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(out, ", "); got != "101, dead 101, 101, confirmed 101, 102" {
		t.Errorf("it emitted %s", got)
	}
}

func sortedSlots(of map[blockID]struct{}) (slots []ledger.Slot) {
	for id := range of {
		slots = append(slots, id.slot)
	}
	slices.Sort(slots)
	return slots
}
