package geyser

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
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
	ctx, cancel := context.WithTimeout(t.Context(), most)
	defer cancel()
	return runIn(ctx, c, from, out)
}

// runIn is run until ctx ends.
func runIn(ctx context.Context, c Config, from *ledger.ResumePoint, out *collector) (*Source, error) {
	s := New(c)
	out.resume(from, s.Info())
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
		out := &collector{}
		s, err := run(t, configFor(node), nil, out, 3*time.Second)
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("Run: %v after %q", err, out.first(30))
		}
		if got := out.of("block"); got != "101 102 103 104 105 106 107 108" {
			t.Errorf("blocks %s", got)
		}
		if got := out.of("confirmed"); got != "102 103 104 105 106 107" {
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
		if n := s.Upstream(); !n.Gap.Open() || !n.Gap.Stuck || n.Gap.After != 107 || n.Gap.UpTo != 109 || n.Gaps != 1 || n.GapsRepaired != 0 {
			t.Errorf("%+v, %d gaps, %d repaired", n.Gap, n.Gaps, n.GapsRepaired)
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

// TestNoGapIsMissedInManyDisconnects has a node lose messages and whole blocks, refuse or ignore replays, and end each
// session after a few blocks: the chain is whole all the time, and in the end. LEDGERD_DISCONNECTS says how many sessions end.
func TestNoGapIsMissedInManyDisconnects(t *testing.T) {
	most := 300
	if text, ok := os.LookupEnv("LEDGERD_DISCONNECTS"); ok {
		var err error
		if most, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	bubble.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		r, tip, out := rand.New(rand.NewPCG(1, uint64(most))), ledger.Slot(100), &collector{}
		chance := func(of int) bool { return r.IntN(of) == 0 }
		session := func(c *call) []part { // what the node tells in it; none where it refuses
			mu.Lock()
			defer mu.Unlock()
			begin, healed := tip-ledger.Slot(r.IntN(3)), c.number >= most
			switch {
			case healed && c.number == most:
				tip += 10
				out.stopAt(fmt.Sprint("block ", tip))
			case !healed:
				tip += ledger.Slot(r.IntN(4))
			}
			if from := c.from(); from.Known && (healed || !chance(4)) {
				begin = from.Value
			} else if from.Known && chance(2) {
				return nil
			}
			var all []part
			for slot := begin; slot <= tip; slot++ {
				if !healed && chance(8) {
					continue
				}
				for _, m := range straight(slot, slot) {
					if healed || !chance(60) {
						all = append(all, m)
					}
				}
			}
			return all
		}
		node := newFakeNode(t, func(c *call) error {
			all := session(c)
			if all == nil {
				return status.Error(codes.OutOfRange, "too old")
			}
			if err := c.send(all...); err != nil || c.number < most {
				return err
			}
			return c.hang()
		})
		c := configFor(node)
		c.Filler = &fillerFunc{fill: func(after, upTo ledger.Slot, emit func(block) error) error {
			mu.Lock()
			fails := chance(3)
			mu.Unlock()
			if fails {
				return failure{upstream.Unavailable, 0}
			}
			return fillStraight(after, upTo, emit)
		}}
		s, err := run(t, c, at(100), out, 1000*time.Hour)
		if !errors.Is(err, errEnough) {
			t.Fatalf("Run: %v, %+v", err, s.Upstream())
		}
		next := ledger.Slot(101)
		for slot := range strings.FieldsSeq(strings.ReplaceAll(out.of("block"), " filled", "")) {
			if slot != fmt.Sprint(next) {
				t.Fatalf("block %s comes after %d", slot, next-1)
			}
			next++
		}
		n := s.Upstream()
		if next != tip+1 || n.Gaps < uint64(most/10) || n.Errors[upstream.Closed] < uint64(most/4) {
			t.Errorf("the chain ends before slot %d, want %d; %d gaps, %v", next, tip+1, n.Gaps, n.Errors)
		}
		t.Logf("%d sessions, %d gaps, %d replays, %d blocks", len(node.began()), n.Gaps, n.Replays, next-101)
	})
}
