package geyser

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/bubble"
	"ledgerd/engine/source/upstream"
	"ledgerd/engine/source/yellowstone"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// run follows a fake node in simulated time until the collector has enough or the time is over.
func run(t *testing.T, c Config, from *ledger.ResumePoint, out *collector, most time.Duration) (*Source, error) {
	t.Helper()
	s := New(c)
	ctx, cancel := context.WithTimeout(t.Context(), most)
	defer cancel()
	return s, s.Run(ctx, from, out.emit)
}

func TestBlocksAreEmittedFromTheFirstConfirmedOne(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		node := newFakeNode(t, func(c *call) error {
			// Slot 100 was under way before.
			if err := c.send(append(block{slot: 100, parent: 99}.messages()[2:], straight(101, 108)...)...); err != nil {
				return err
			}
			return c.hang()
		})
		out := &collector{until: "finalized 104"}
		s, err := run(t, configFor(node), nil, out, time.Minute)
		if !errors.Is(err, errEnough) {
			t.Fatalf("Run: %v after %q", err, out.first(30))
		}
		if got := out.of("block"); got != "101 102 103 104 105 106 107 108" {
			t.Errorf("blocks %s", got)
		}
		if got := out.of("confirmed"); got != "101 102 103 104 105 106 107" {
			t.Errorf("confirmed %s", got)
		}
		if got := out.of("finalized"); got != "101 102 103 104" {
			t.Errorf("finalized %s", got)
		}
		if n := s.Upstream(); n.Blocks != 8 || n.SealedSlot != 108 || n.UpstreamSlot != 108 || n.Connects != 1 || n.Gaps != 0 {
			t.Errorf("%+v", n)
		}
		if !slices.Equal(node.began(), []string{"live"}) {
			t.Errorf("subscribed from %q", node.began())
		}
	})
}

func TestWhatIsLostIsShownAgainOrFilled(t *testing.T) {
	outOfRange := status.Error(codes.OutOfRange, "slot 106 is not available, replay begins at 500")
	internal := status.Error(codes.Internal, "lagged to receive geyser messages")
	without := func(all []part, slot ledger.Slot) []part { // what is told of a slot
		drop := block{slot: slot, parent: slot - 1}.messages()
		return slices.DeleteFunc(slices.Clone(all), func(p part) bool {
			return slices.ContainsFunc(drop, func(d part) bool { return string(d) == string(p) })
		})
	}
	tests := map[string]struct {
		script func(c *call) error // of the calls after the first, which shows 101 to 108 and ends
		filler func(after, upTo ledger.Slot, emit func(block) error) error
		begins []string
		asked  []string
		blocks string
	}{
		"replayed": {
			script: func(c *call) error { return c.send(straight(106, 112)...) },
			begins: []string{"98", "106"}, blocks: "109 110 111 112",
		},
		"replayed from farther back": {
			script: func(c *call) error { return c.send(straight(101, 112)...) },
			begins: []string{"98", "106"}, blocks: "109 110 111 112",
		},
		"replay ignored": {
			script: func(c *call) error { return c.send(straight(110, 112)...) }, filler: fillStraight,
			begins: []string{"98", "106"}, asked: []string{"107.107-109"}, blocks: "109 filled 110 111 112",
		},
		"replay out of range": {
			script: func(c *call) error {
				if c.from().Known {
					return outOfRange
				}
				return c.send(straight(110, 112)...)
			},
			filler: fillStraight,
			begins: []string{"98", "106", "live"}, asked: []string{"107.107-109"}, blocks: "109 filled 110 111 112",
		},
		"replay out of range after a ping": {
			script: func(c *call) error {
				if c.from().Known {
					if err := c.send(part(nil).bytes(6, nil)); err != nil {
						return err
					}
					return outOfRange
				}
				return c.send(straight(110, 112)...)
			},
			filler: fillStraight,
			begins: []string{"98", "106", "live"}, asked: []string{"107.107-109"}, blocks: "109 filled 110 111 112",
		},
		"replay fails at first": {
			script: func(c *call) error {
				if c.number == 1 {
					return internal
				}
				return c.send(straight(106, 112)...)
			},
			begins: []string{"98", "106", "106"}, blocks: "109 110 111 112",
		},
		"a block is lost on the way": {
			script: func(c *call) error {
				if c.number == 1 {
					return c.send(append(without(straight(106, 112), 110), part(nil))...)
				}
				return c.send(straight(107, 112)...)
			},
			filler: fillStraight, // the stream tells more than a Filler, and is asked first
			begins: []string{"98", "106", "107"}, blocks: "109 110 111 112",
		},
		"a transaction is lost on the way": {
			script: func(c *call) error {
				all := straight(106, 112)
				if c.number == 1 {
					lost := string(transactionUpdate(110, 0, keyOf(1)))
					all = slices.DeleteFunc(all, func(p part) bool { return string(p) == lost })
				}
				return c.send(all...)
			},
			begins: []string{"98", "106", "107"}, blocks: "109 110 111 112",
		},
		"skipped slots are no gap": {
			script: func(c *call) error {
				all := append(straight(106, 108), block{slot: 111, parent: 108}.messages()...)
				return c.send(append(all, block{slot: 112, parent: 111}.messages()...)...)
			},
			begins: []string{"98", "106"}, blocks: "111 112",
		},
		"the Filler fails at first": {
			script: func(c *call) error { return c.send(append(straight(110, 112), straight(113, 113)...)...) },
			filler: func() func(after, upTo ledger.Slot, emit func(block) error) error {
				tries := 0
				return func(after, upTo ledger.Slot, emit func(block) error) error {
					if tries++; tries < 3 {
						return failure{upstream.Unavailable, 0}
					}
					return fillStraight(after, upTo, emit)
				}
			}(),
			begins: []string{"98", "106"}, asked: []string{"107.107-109", "107.107-109", "107.107-109"}, blocks: "109 filled 110 111 112",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				node := newFakeNode(t, func(c *call) error {
					if c.number == 0 {
						return c.send(straight(101, 108)...)
					}
					if err := tt.script(c); err != nil {
						return err
					}
					return c.hang()
				})
				c := configFor(node)
				filler := &fillerFunc{fill: tt.filler}
				if tt.filler != nil {
					c.Filler = filler
				}
				out := &collector{until: "block 112"}
				s, err := run(t, c, at(100), out, time.Minute)
				if !errors.Is(err, errEnough) {
					t.Fatalf("Run: %v after %q, begun at %q", err, out.first(30), node.began())
				}
				if got, want := out.of("block"), "101 102 103 104 105 106 107 108 "+tt.blocks; got != want {
					t.Errorf("blocks %s, want %s", got, want)
				}
				if got := node.began(); !slices.Equal(got, tt.begins) {
					t.Errorf("subscribed from %q, want %q", got, tt.begins)
				}
				if got := filler.questions(); !slices.Equal(got, tt.asked) {
					t.Errorf("asked to fill %q, want %q", got, tt.asked)
				}
				n := s.Upstream()
				if n.Replays+uint64(strings.Count(strings.Join(tt.begins, " "), "live")) != uint64(len(tt.begins)) {
					t.Errorf("%d replays for %q", n.Replays, tt.begins)
				}
				if tt.asked != nil && (n.Gaps != 1 || n.GapSlots != 2 && n.GapSlots != 1) {
					t.Errorf("%+v", n)
				}
			})
		})
	}
}

// failure is what a Filler says that asked a node.
type failure struct {
	kind  upstream.Kind
	after time.Duration
}

func (f failure) Error() string             { return "it failed" }
func (f failure) Kind() upstream.Kind       { return f.kind }
func (f failure) RetryAfter() time.Duration { return f.after }

func TestAFillerIsAskedAgainWhenItsNodeWantsIt(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		node := newFakeNode(t, func(c *call) error {
			if c.number == 0 {
				return c.send(straight(101, 108)...)
			}
			for slot := ledger.Slot(110); ; slot++ {
				if err := c.send(straight(slot, slot)...); err != nil {
					return err
				}
				time.Sleep(400 * time.Millisecond)
			}
		})
		var asked []time.Time
		c := configFor(node)
		c.Filler = &fillerFunc{fill: func(after, upTo ledger.Slot, emit func(block) error) error {
			if asked = append(asked, time.Now()); len(asked) == 1 {
				return fmt.Errorf("cannot fill: %w", failure{upstream.RateLimited, 17 * time.Second})
			}
			return fillStraight(after, upTo, emit)
		}}
		out := &collector{until: "block 120"}
		s, err := run(t, c, at(100), out, time.Minute)
		if !errors.Is(err, errEnough) {
			t.Fatalf("Run: %v after %q", err, out.first(30))
		}
		if len(asked) != 2 || asked[1].Sub(asked[0]) < 17*time.Second {
			t.Errorf("asked at %v", asked)
		}
		if n := s.Upstream().Errors[upstream.RateLimited]; n != 1 {
			t.Errorf("%d errors of that kind", n)
		}
	})
}

// Where nobody has what is missing, nothing is emitted, and it is tried again without haste.
func TestNothingIsEmittedPastAGapThatNobodyFills(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		node := newFakeNode(t, func(c *call) error {
			if c.number == 0 {
				return c.send(straight(101, 108)...)
			}
			if c.number%2 == 0 {
				return status.Error(codes.OutOfRange, "too old")
			}
			if err := c.send(straight(110, 120)...); err != nil {
				return err
			}
			return c.hang()
		})
		c := configFor(node)
		c.Random = nil
		out := &collector{}
		s, err := run(t, c, at(100), out, 10*time.Minute)
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("Run: %v", err)
		}
		if got := out.of("block"); got != "101 102 103 104 105 106 107 108" {
			t.Errorf("blocks %s", got)
		}
		if n := len(node.began()); n < 60 || n > 300 {
			t.Errorf("%d sessions in 10 minutes", n)
		}
		if n := s.Upstream(); !n.Gap.Open() || !n.Gap.Stuck || n.Gap.After != 107 || n.Gap.UpTo != 109 {
			t.Errorf("%+v", n.Gap)
		}
		if got := s.Trouble(); !strings.Contains(got, "missing and cannot be filled") {
			t.Errorf("Trouble: %q", got)
		}
	})
}

func TestSessionsEndThatShowTooLittle(t *testing.T) {
	tests := map[string]struct {
		script func(c *call) error
		want   upstream.Kind
		after  time.Duration // the most that it may take
	}{
		"nothing at all": {func(c *call) error { return c.hang() }, upstream.Stalled, 7 * time.Second},
		"nothing any more": {func(c *call) error {
			if err := c.send(straight(101, 102)...); err != nil {
				return err
			}
			return c.hang()
		}, upstream.Stalled, 7 * time.Second},
		"messages without a block": {func(c *call) error {
			for slot := ledger.Slot(200); ; slot++ {
				if err := c.send(slotUpdate(slot, yellowstone.FirstShred)); err != nil {
					return err
				}
				time.Sleep(time.Second)
			}
		}, upstream.Stalled, 17 * time.Second},
		"the end":        {func(c *call) error { return nil }, upstream.Closed, time.Second},
		"no access":      {func(c *call) error { return status.Error(codes.Unauthenticated, "no") }, upstream.Refused, time.Second},
		"too many":       {func(c *call) error { return status.Error(codes.ResourceExhausted, "no") }, upstream.RateLimited, time.Second},
		"lagged":         {func(c *call) error { return status.Error(codes.Internal, "lagged") }, upstream.Server, time.Second},
		"garbage":        {func(c *call) error { return c.send(part{0x12, 0x7f, 1}) }, upstream.Garbage, time.Second},
		"a huge message": {func(c *call) error { return c.send(make(part, 1<<20+1)) }, upstream.TooLarge, time.Second},
		"two blocks": {func(c *call) error {
			return c.send(append(straight(101, 102), block{slot: 102, parent: 101, fork: 1}.head())...)
		}, upstream.Equivocation, time.Second},
		"a foreign chain": {func(c *call) error {
			return c.send(append(block{slot: 101, parent: 100, parentFork: 7}.messages(), slotUpdate(101, yellowstone.Confirmed))...)
		}, upstream.WrongParent, time.Second},
		"a chain from below": {func(c *call) error {
			return c.send(append(block{slot: 101, parent: 99}.messages(), slotUpdate(101, yellowstone.Confirmed))...)
		}, upstream.WrongParent, time.Second},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				node := newFakeNode(t, func(c *call) error {
					if c.number == 0 {
						return tt.script(c)
					}
					return c.send(straight(101, 103)...)
				})
				c := configFor(node)
				c.MessageBytes = 1 << 20
				out := &collector{until: "block 103"}
				began := time.Now()
				s, err := run(t, c, at(100), out, time.Minute)
				if !errors.Is(err, errEnough) {
					t.Fatalf("Run: %v after %q", err, out.first(30))
				}
				n := s.Upstream()
				if n.Errors[tt.want] != 1 || time.Since(began) > tt.after {
					t.Errorf("after %v: %v of %v", time.Since(began), n.Errors, tt.want)
				}
				if got := out.of("block"); got != "101 102 103" {
					t.Errorf("blocks %s", got)
				}
			})
		})
	}
}

// A fork is emitted as it is shown; a block that is dead is taken back with what builds on it.
func TestForksAndDeadBlocks(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		node := newFakeNode(t, func(c *call) error {
			all := straight(101, 103)
			all = append(all, block{slot: 104, parent: 103, fork: 1}.messages()...)
			all = append(all, block{slot: 105, parent: 104, fork: 1, parentFork: 1}.messages()...)
			all = append(all, slotUpdate(104, yellowstone.Dead))
			all = append(all, block{slot: 106, parent: 105, fork: 1, parentFork: 1}.messages()...) // of what is dead
			all = append(all, block{slot: 107, parent: 103}.messages()...)
			all = append(all, slotUpdate(103, yellowstone.Finalized), slotUpdate(107, yellowstone.Confirmed))
			if err := c.send(all...); err != nil {
				return err
			}
			return c.hang()
		})
		out := &collector{until: "confirmed 107"}
		if _, err := run(t, configFor(node), at(100), out, time.Minute); !errors.Is(err, errEnough) {
			t.Fatalf("Run: %v after %q", err, out.first(30))
		}
		if got := out.of("block") + ", dead " + out.of("dead"); got != "101 102 103 104.1 105.1 107, dead 104" {
			t.Errorf("blocks %s", got)
		}
	})
}
