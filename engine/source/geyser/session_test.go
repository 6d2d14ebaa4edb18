package geyser

import (
	"bytes"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/ledgertest"
	"ledgerd/engine/source/nodetest"
	"ledgerd/engine/source/upstream"
	"ledgerd/engine/source/yellowstone"
)

func TestBlocksAreEmittedFromTheFirstConfirmedOne(t *testing.T) {
	underWay := block{slot: 100, parent: 99}.messages()[2:] // it began before
	s := scenario{fresh: true, most: 3 * time.Second, script: stays(append(underWay, straight(101, 108)...)...)}
	s.run(t)
	s.check(t, "101 102 103 104 105 106 107 108", "live", "")
	ledgertest.Equal(t, s.of("confirmed"), "102 103 104 105 106 107", "what is confirmed")
	ledgertest.Equal(t, s.of("finalized"), "101 102 103 104", "what is finalized")
	n := s.source.Upstream()
	if n.Blocks != 8 || n.SealedSlot != 108 || n.UpstreamSlot != 108 || n.Connects != 1 || n.Gaps != 0 {
		t.Errorf("%+v", n)
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

// F21, F25, F26: what a session lost is shown again or filled, and nothing past it comes before.
func TestWhatIsLostIsShownAgainOrFilled(t *testing.T) {
	tries := 0
	failsTwice := func(after, upTo ledger.Slot, emit func(block) error) error {
		if tries++; tries < 3 {
			return failure{upstream.Unavailable, 0}
		}
		return fillStraight(after, upTo, emit)
	}
	empty := true
	givesNothingOnce := func(after, upTo ledger.Slot, emit func(block) error) error {
		if empty {
			empty = false
			return nil
		}
		return fillStraight(after, upTo, emit)
	}
	const shown, replayed, filled = "101 102 103 104 105 106 107 108 ", "109 110 111 112", "109 filled 110 111 112"
	skips := append(straight(107, 108), block{slot: 111, parent: 108}.messages()...)
	skips = append(skips, block{slot: 112, parent: 111}.messages()...)
	for name, tt := range map[string]struct {
		next                  script // of the calls after the first, which shows 101 to 108 and ends
		fill                  fill
		blocks, begins, asked string
	}{
		"replayed":            {stays(straight(107, 112)...), nil, replayed, "100 107", ""},
		"replay ignored":      {stays(straight(110, 112)...), fillStraight, filled, "100 107", "107.107-109"},
		"replay out of range": {live(stays(straight(110, 112)...)), fillStraight, filled, "100 107 live", "107.107-109"},
		"replay out of range after a ping": {
			live(stays(straight(110, 112)...), nodetest.Ping()), fillStraight, filled, "100 107 live", "107.107-109",
		},
		"replay fails at first": {
			calls(nil, fails(codes.Internal), stays(straight(107, 112)...)), nil, replayed, "100 107 107", "",
		},
		"a block is lost on the way": { // the stream tells more than a Filler, and is asked first
			calls(nil, stays(append(straight(107, 109), straight(111, 112)...)...), stays(straight(107, 112)...)),
			fillStraight, replayed, "100 107 108", "",
		},
		"a transaction is lost on the way": {
			calls(nil, stays(replaced(straight(107, 112), block{slot: 110, parent: 109}.transaction())...), stays(straight(107, 112)...)),
			nil, replayed, "100 107 109", "",
		},
		"skipped slots are no gap": {
			stays(skips...), nil, "111 112", "100 107", "",
		},
		"the Filler gives nothing at first": {
			stays(straight(110, 113)...), givesNothingOnce, filled, "100 107 107", "107.107-109 107.107-109",
		},
		"the Filler fails at first": {
			stays(straight(110, 113)...), failsTwice, filled, "100 107", "107.107-109 107.107-109 107.107-109",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := scenario{fill: tt.fill, until: "block 112", script: func(c *call) error {
				if c.number == 0 {
					return c.send(straight(101, 108)...)
				}
				return tt.next(c)
			}}
			s.run(t)
			s.check(t, shown+tt.blocks, tt.begins, tt.asked)
			n := s.source.Upstream()
			ledgertest.Equal(t, n.Replays+uint64(strings.Count(tt.begins, "live")), uint64(len(s.begins)), "replays, and what is live, of %q", s.begins)
			if tt.asked != "" && (n.Gaps != 1 || n.GapSlots != 2 && n.GapSlots != 1) {
				t.Errorf("%+v", n)
			}
		})
	}
}

func TestAFillerIsAskedAgainWhenItsNodeWantsIt(t *testing.T) {
	var asked []time.Time
	s := scenario{until: "block 120"}
	s.script = calls(shows(straight(101, 108)...), func(c *call) error {
		for slot := ledger.Slot(110); ; slot++ {
			if err := c.send(straight(slot, slot)...); err != nil {
				return err
			}
			time.Sleep(400 * time.Millisecond)
		}
	})
	s.fill = func(after, upTo ledger.Slot, emit func(block) error) error {
		if asked = append(asked, time.Now()); len(asked) == 1 {
			return fmt.Errorf("cannot fill: %w", failure{upstream.RateLimited, 17 * time.Second})
		}
		return fillStraight(after, upTo, emit)
	}
	s.run(t)
	if len(asked) != 2 || asked[1].Sub(asked[0]) < 17*time.Second {
		t.Errorf("asked at %v", asked)
	}
	ledgertest.Equal(t, s.source.Upstream().Errors[upstream.RateLimited], 1, "errors of that kind")
}

// F21, F26: where nobody has what is missing, nothing is emitted, and it is tried again without haste.
func TestNothingIsEmittedPastAGapThatNobodyFills(t *testing.T) {
	s := scenario{most: 10 * time.Minute, config: func(c *Config) { c.Random = nil }}
	s.script = func(c *call) error {
		answers := []script{fails(codes.OutOfRange), stays(straight(110, 120)...)}
		return calls(shows(straight(101, 108)...), answers[c.number%2])(c)
	}
	s.run(t)
	s.check(t, "101 102 103 104 105 106 107 108", "", "")
	if n := len(s.begins); n < 60 || n > 300 {
		t.Errorf("%d sessions in 10 minutes", n)
	}
	n := s.source.Upstream()
	if !n.Gap.Open() || !n.Gap.Stuck || n.Gap.After != 107 || n.Gap.UpTo != 109 || n.Gaps != 1 || n.GapsRepaired != 0 {
		t.Errorf("%+v, %d gaps, %d repaired", n.Gap, n.Gaps, n.GapsRepaired)
	}
	ledgertest.Contains(t, s.source.Trouble(), "missing and cannot be filled", "the trouble")
}

// F25, F27, F28, F29: a session that stalls, trickles, or sends what cannot be ends, and the next one goes on.
func TestSessionsEndThatShowTooLittle(t *testing.T) {
	noise := func(c *call) error {
		for slot := ledger.Slot(200); ; slot++ {
			if err := c.send(slotUpdate(slot, yellowstone.FirstShred)); err != nil {
				return err
			}
			time.Sleep(time.Second)
		}
	}
	confirmed := slotUpdate(101, yellowstone.Confirmed)
	other := block{slot: 102, parent: 101, fork: 1}
	foreign, below := block{slot: 101, parent: 100, parentFork: 7}, block{slot: 101, parent: 99}
	for name, tt := range map[string]struct {
		first script
		want  upstream.Kind
		after time.Duration // the most that it may take
	}{
		"nothing at all":           {stays(), upstream.Stalled, 7 * time.Second},
		"nothing any more":         {stays(straight(101, 102)...), upstream.Stalled, 7 * time.Second},
		"messages without a block": {noise, upstream.Stalled, 17 * time.Second},
		"the end":                  {shows(), upstream.Closed, time.Second},
		"no access":                {fails(codes.Unauthenticated), upstream.Refused, time.Second},
		"too many":                 {fails(codes.ResourceExhausted), upstream.RateLimited, time.Second},
		"lagged":                   {fails(codes.Internal), upstream.Server, time.Second},
		"garbage":                  {shows(nil, part{0x12, 0x7f, 1}), upstream.Garbage, time.Second}, // an empty message is none
		"a huge message":           {shows(make(part, 1<<20+1)), upstream.TooLarge, time.Second},
		"two blocks":               {shows(append(straight(101, 102), other.head())...), upstream.Equivocation, time.Second},
		"a foreign chain":          {shows(append(foreign.messages(), confirmed)...), upstream.WrongParent, time.Second},
		"a chain from below":       {shows(append(below.messages(), confirmed)...), upstream.WrongParent, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			s := scenario{until: "block 103", config: func(c *Config) { c.MessageBytes = 1 << 20 }}
			s.script = calls(tt.first, shows(straight(101, 103)...))
			s.run(t)
			s.check(t, "101 102 103", "", "")
			if n := s.source.Upstream(); n.Errors[tt.want] != 1 || s.took > tt.after {
				t.Errorf("after %v: %v of %v", s.took, n.Errors, tt.want)
			}
		})
	}
}

// A node of a cluster that stands still answers pings, and is not left for its silence.
func TestANodeThatAnswersPingsIsThere(t *testing.T) {
	s := scenario{most: 50 * time.Second, script: func(c *call) error {
		if err := c.send(straight(101, 104)...); err != nil {
			return err
		}
		for {
			var request []byte
			if err := c.stream.RecvMsg(&request); err != nil {
				return err
			}
			if err := c.send(part(nil).Bytes(9, nil)); err != nil { // a pong
				return err
			}
		}
	}}
	s.run(t)
	s.check(t, "101 102 103 104", "100", "")
}

// F29: a node calls a block dead that its chain goes on from. When it, or a block on it, is confirmed it is on the chain again.
func TestABlockThatIsWronglyCalledDeadComesBack(t *testing.T) {
	dead := func(all []part, slot ledger.Slot) []part { // right after it was processed
		processed := slotUpdate(slot, yellowstone.Processed)
		return replaced(all, processed, processed, slotUpdate(slot, yellowstone.Dead))
	}
	again := stays(append(straight(101, 112), slotUpdate(104, yellowstone.Dead))...)
	for name, tt := range map[string]struct {
		script              script
		fill                fill
		blocks, dead, asked string
	}{
		"two of them": {
			calls(shows(dead(dead(straight(101, 108), 103), 104)...), again), nil,
			"101 102 103 103 104 105 106 107 108 109 110 111 112", "103 104", "",
		},
		"what builds on it is filled": {
			calls(shows(dead(straight(101, 104), 104)...), live(stays(straight(109, 112)...))), fillStraight,
			"101 102 103 104 104 105 filled 106 filled 107 filled 108 filled 109 110 111 112", "104", "103.103-108",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := scenario{script: tt.script, fill: tt.fill}
			s.run(t)
			s.check(t, tt.blocks, "", tt.asked)
			if n := s.source.Upstream(); n.Gap.Open() || n.Dead == 0 || s.of("dead") != tt.dead {
				t.Errorf("dead %s, want %s, %+v", s.of("dead"), tt.dead, n)
			}
		})
	}
}

// A write that comes after its block counts as one of what the node sent wrongly, and comes with the next block.
func TestAWriteAfterItsBlockIsCounted(t *testing.T) {
	late, written := accountUpdate(104, keyOf(9), keyOf(9), 5, 2000), ledger.Lamports(0)
	s := scenario{until: "block 105", script: stays(slices.Concat(straight(101, 104), []part{late}, block{slot: 105, parent: 104}.messages())...)}
	s.emitted = func(e ledger.Event) {
		if b, ok := e.(*ledger.Block); ok && b.Slot == 105 && len(b.Accounts) == 3 {
			written = b.Accounts[2].Lamports
		}
	}
	s.run(t)
	ledgertest.Equal(t, s.source.Upstream().Errors[upstream.Garbage], 1, "errors of that kind")
	ledgertest.Equal(t, written, 5, "what the block after it wrote beside its own")
}

// F29: a head that names slot 100 for its parent, which is of slot 101, would have 101 skipped: also where the stream
// began in the middle of that, so that it never comes whole.
func TestTheRootIsNotWhatNamesAnotherSlotForItsParent(t *testing.T) {
	for name, from := range map[string]int{"whole": 0, "from its middle on": 2, "its end": 4} {
		t.Run(name, func(t *testing.T) {
			wrong := block{slot: 102, parent: 101}.block()
			wrong.ParentSlot = 100
			mute := replaced(straight(101, 106), block{slot: 102, parent: 101}.head(), nodetest.HeadUpdate(wrong))
			mute = replaced(mute, slotUpdate(101, yellowstone.Confirmed))
			first, next := shows(mute[from:]...), shows(straight(101, 106)...)
			s := scenario{fresh: true, until: "block 106", script: calls(first, fails(codes.Internal), next)}
			s.run(t)
			s.check(t, "101 102 103 104 105 106", "", "")
		})
	}
}

// F29: a node calls a wrong block confirmed, which the Filler does not know.
func TestAFillerThatKnowsNotTheConfirmedBlockIsAskedFromTheRoot(t *testing.T) {
	wrong := append(block{slot: 104, parent: 103, fork: 1}.messages(), slotUpdate(104, yellowstone.Confirmed))
	s := scenario{until: "block 114"}
	s.script = calls(stays(slices.Concat(straight(101, 103), wrong, straight(110, 112))...), stays(straight(110, 114)...))
	s.fill = func(after, upTo ledger.Slot, emit func(block) error) error {
		if after == 104 {
			return failure{kind: upstream.WrongParent}
		}
		return fillStraight(after, upTo, emit)
	}
	s.run(t)
	blocks := "101 102 103 104.1 104 filled 105 filled 106 filled 107 filled 108 filled 109 filled 110 111 112 113 114"
	s.check(t, blocks, "", "104.104-109 100.100-109")
	if n := s.source.Upstream(); n.Errors[upstream.Equivocation] == 0 {
		t.Errorf("errors %v", n.Errors)
	}
}

// A server that counts more transactions than it sends is followed, and the log is not filled with that.
func TestBlocksThatAreAlwaysShortAreToldSeldom(t *testing.T) {
	var all []part
	var log bytes.Buffer
	for slot := ledger.Slot(101); slot <= 400; slot++ {
		b := block{slot: slot, parent: slot - 1}
		counts := b.block()
		counts.AddTransaction(ledger.Transaction{})
		all = append(all, replaced(straight(slot, slot), b.head(), nodetest.HeadUpdate(counts))...)
	}
	s := scenario{until: "block 390", script: stays(all...), config: func(c *Config) { c.Logger = slog.New(slog.NewTextHandler(&log, nil)) }}
	s.run(t)
	if n := strings.Count(log.String(), "fewer transactions"); n == 0 || n > 10 {
		t.Errorf("%d lines about 290 blocks", n)
	}
}
