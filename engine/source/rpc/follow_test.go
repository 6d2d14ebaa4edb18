package rpc

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/ledgertest"
	"ledgerd/engine/source/upstream"
)

// F21, F22, F29: slots without a block are no gap, and what the node names wrongly is asked for again.
func TestTheChainIsFollowedWhateverTheNodeSays(t *testing.T) {
	type counts map[upstream.Kind]uint64
	wrong := func(parent ledger.Slot, previous string) answer {
		b := fakeBlock{slot: 12, parent: parent, hash: hashOf("12"), previous: hashOf(previous)}
		return onBlock(12, times(1, gives(b.json())))
	}
	replaced := func() (twin *fakeBlock, shown answer) {
		twin = &fakeBlock{slot: 12, parent: 11, hash: hashOf("twin"), previous: hashOf("11")}
		return twin, onBlock(12, times(1, func(c *fakeCall) bool { return gives(twin.json())(c) }))
	}
	_, showsTwin := replaced()
	paying, showsPaying := replaced()
	lists := func(list string) answer {
		return on("getBlocksWithLimit", func(c *fakeCall) bool { return c.slot(0) == 11 && gives(list)(c) })
	}
	for name, tt := range map[string]struct {
		has    []ledger.Slot // each on the one before, the first on slot 10
		change func(t *testing.T, n *fakeNode)
		fault  answer
		want   []ledger.Slot // nil: what the node has
		errors counts        // nil: any

		parallel int // 1: calls come one after the other
		asked    int // how often the accounts are asked for
	}{
		"slots are skipped":        {has: []ledger.Slot{11, 12, 15, 16, 20}, errors: counts{}},
		"skipped slots are listed": {has: []ledger.Slot{11, 14, 15}, fault: lists("[11,12,13,14,15]")},
		"blocks are not listed":    {has: []ledger.Slot{11, 14, 15}, fault: lists("[15]")},
		"the first block that is kept is next": {
			has: []ledger.Slot{5000, 5001}, errors: counts{}, change: func(_ *testing.T, n *fakeNode) { n.first = 5000 }},
		// At the tip a node lists what it cannot answer for a moment, and a balancer may ask one that is behind twice.
		"a block comes a moment later": {
			has: slots(11, 12), fault: onBlock(12, lasting(150*time.Millisecond, fails(-32004))), errors: counts{upstream.Unavailable: 1}},
		"a block comes later": {
			has: slots(11, 12), fault: onBlock(12, lasting(500*time.Millisecond, fails(-32004))), errors: counts{upstream.Unavailable: 3}},
		"a parent of another hash": {has: slots(11, 13), fault: wrong(11, "x"), parallel: 1, errors: counts{upstream.WrongParent: 1}},
		"a parent of another slot": {has: slots(11, 13), fault: wrong(10, "10"), parallel: 1, errors: counts{upstream.WrongParent: 1}},
		"a parent long ago":        {has: slots(11, 13), fault: wrong(3, "3"), parallel: 1, errors: counts{upstream.WrongParent: 1}},
		// A block that does not say on which block it builds is believed to build on the one before only if the node has that one.
		"a block without its parent's hash": {has: slots(11, 12), errors: counts{}, change: func(_ *testing.T, n *fakeNode) {
			n.prepare(9, 10)
			n.blocks[11].previous = ledger.Hash{}
		}},
		"another block is final": {
			has: slots(11, 12), parallel: 1, fault: showsTwin, want: []ledger.Slot{11, 12, 12, 13}, errors: counts{upstream.Equivocation: 1},
			change: func(t *testing.T, n *fakeNode) {
				n.finalized = 12
				after(t, time.Minute, func() { n.add(12, 13) })
			}},
		// What is known of the accounts of a block that is taken back is asked for again.
		"another block is next": {
			has: slots(11, 12), parallel: 1, fault: showsPaying, want: []ledger.Slot{11, 12, 11, 12, 13},
			errors: counts{upstream.Equivocation: 1, upstream.WrongParent: 1}, asked: 2, change: func(t *testing.T, n *fakeNode) {
				n.pay(12, 500, keyOf(1))
				n.hold(keyOf(1), 500, ledger.VoteProgram, nil)
				paying.fields = n.blocks[12].fields
				after(t, 2*time.Second, func() { n.add(12, 13) })
			}},
		// Behind a balancer the node may be replaced by one on another branch.
		"another branch": {
			has: slots(11, 13), want: []ledger.Slot{11, 12, 13, 11, 14, 15},
			change: func(t *testing.T, n *fakeNode) {
				after(t, 3*time.Second, func() {
					n.locked(func() {
						delete(n.blocks, 12)
						delete(n.blocks, 13)
					})
					n.add(11, 14, 15)
				})
			}},
		// That a node shows no block where it finalized proves nothing: the next block tells that blocks were taken back.
		"another branch is final": {
			has: slots(11, 13), want: []ledger.Slot{11, 12, 13, 11, 14, 15},
			change: func(t *testing.T, n *fakeNode) {
				after(t, 3*time.Second, func() {
					n.locked(func() {
						delete(n.blocks, 12)
						delete(n.blocks, 13)
						n.finalized = 13
					})
				})
				after(t, 30*time.Second, func() { n.add(11, 14, 15) })
			}},
	} {
		play(t, Config{Parallel: tt.parallel}, func(t *testing.T, n *fakeNode, s *Source) {
			t.Log(name)
			n.add(10, tt.has...)
			if tt.change != nil {
				tt.change(t, n)
			}
			n.fault = tt.fault
			want := tt.want
			if want == nil {
				want = tt.has
			}
			r := follow(t, s, at(10), untilSlot(want[len(want)-1]))
			wantSlots(t, r, want...)
			chain := map[ledger.Hash]bool{hashOf("10"): true}
			for _, b := range r.blocks() {
				if !chain[b.PreviousBlockhash.Value] {
					t.Errorf("block %d does not build on what came before", b.Slot)
				}
				chain[b.Blockhash] = true
			}
			g := s.Upstream()
			for kind, count := range g.Errors {
				if tt.errors != nil && count != tt.errors[upstream.Kind(kind)] {
					t.Errorf("%d errors of kind %v, want %d", count, upstream.Kind(kind), tt.errors[upstream.Kind(kind)])
				}
			}
			if g.Gaps != 0 || !g.Connected || s.Trouble() != "" || g.Blocks != uint64(len(want)) || g.SealedSlot != want[len(want)-1] {
				t.Errorf("figures: %+v, %q", g, s.Trouble())
			}
			ledgertest.Equal(t, len(n.asked), tt.asked, "calls that asked for accounts: %v; how many", n.asked)
		})
	}
}

func TestWhereAFreshNodeBegins(t *testing.T) {
	from := func(slot ledger.Slot) Config { return Config{From: ledger.Some(slot)} }
	for name, tt := range map[string]struct {
		config Config
		first  ledger.Slot // that the node keeps
		want   []ledger.Slot
	}{
		"newest":             {want: []ledger.Slot{120, 121}},
		"slot 0":             {from(0), 0, []ledger.Slot{5, 6, 7, 100, 120, 121}},
		"slot 8":             {from(8), 0, []ledger.Slot{100, 120, 121}},
		"not kept":           {from(1), 300, []ledger.Slot{300, 301}},
		"very long not kept": {from(1), 3_000_000, []ledger.Slot{3_000_000, 3_000_001}},
	} {
		play(t, tt.config, func(t *testing.T, n *fakeNode, s *Source) {
			n.add(4, 5, 6, 7, 100, 120)
			n.first = tt.first
			newest := ledger.Slot(120)
			if tt.first > 0 {
				newest = tt.first
				n.add(120, newest-1, newest)
			}
			after(t, time.Minute, func() {
				ledgertest.Equal(t, s.Trouble(), "", "%s: trouble", name)
				n.add(newest, newest+1)
			})
			wantSlots(t, follow(t, s, nil, untilSlot(newest+1)), tt.want...)
			ledgertest.Equal(t, s.Upstream().Gaps, 0, "%s: gaps", name)
			ledgertest.Equal(t, s.Trouble(), "", "%s: trouble at the end", name)
		})
	}
}

// F21, F26: a slot that cannot be had is skipped only where the next block's parent link says so.
func TestMissingBlocksAreNotTakenForSkipped(t *testing.T) {
	for name, answer := range map[string]answer{
		"skipped": fails(-32007), "skipped long-term": fails(-32009), "not yet": fails(-32004), "no word of its status": fails(-32014),
		"cleaned up": fails(-32001), "unhealthy": fails(-32005), "failed": fails(-32000), "null": gives("null"),
	} {
		play(t, Config{Random: longest}, func(t *testing.T, n *fakeNode, s *Source) {
			n.add(10, 11, 12, 13, 14)
			begun := time.Now()
			n.fault = onBlock(12, lasting(30*time.Second, answer))
			after(t, 20*time.Second, func() {
				g := s.Upstream()
				if g.SealedSlot != 11 || g.Gap.After != 11 || g.Gap.UpTo != 12 || !g.Gap.Open() || !g.Gap.Stuck || s.Trouble() == "" {
					t.Errorf("%s: figures while it is missing: %+v, %q", name, g, s.Trouble())
				}
			})
			wantSlots(t, follow(t, s, at(10), untilSlot(14)), 11, 12, 13, 14)
			if took := time.Since(begun); took < 30*time.Second || took > 41*time.Second {
				t.Errorf("%s: it took %v", name, took)
			}
			if g := s.Upstream(); g.Gaps != 1 || g.GapsRepaired != 1 || g.Gap.Open() {
				t.Errorf("%s: figures after: %+v", name, g)
			}
			if calls := n.calls["getBlock"]; calls > 40 {
				t.Errorf("%s: %d calls", name, calls)
			}
		})
	}
}

// F25, F28: while a node does not answer, health and the log say why, nothing is taken for missing, and the node is not hammered.
func TestFailuresAreToldAndAreNoGap(t *testing.T) {
	const garbled = "what the node sent could not be understood"
	for name, tt := range map[string]struct {
		method string // "" for all
		answer answer
		want   string
	}{
		"no history":         {"", fails(-32011), "the node refused access"},
		"no access":          {"", says(403, ""), "the node refused access"},
		"garbage":            {"", says(200, "<html>"), garbled},
		"limited":            {"", says(429, ""), "the node limits our requests"},
		"told when":          {"", says(429, "", "Retry-After", "7"), "the node limits our requests, asked to wait 7 s"},
		"no list":            {"getBlocksWithLimit", says(500, ""), "no block can be had since"},
		"a list refused":     {"getBlocksWithLimit", fails(-32602), "no block can be had since"},
		"no list but HTML":   {"getBlocksWithLimit", says(200, "<html>"), garbled},
		"block: no answer":   {"getBlock", hangsUp, "the node closed the connection"},
		"block: limited":     {"getBlock", says(429, "", "Retry-After", "1"), "the node limits our requests"},
		"slot: no answer":    {"getSlot", says(502, ""), ""},
		"everything is down": {"", says(502, ""), "no block can be had since"},
	} {
		var lines strings.Builder
		c := Config{Random: longest, Logger: slog.New(slog.NewTextHandler(&lines, nil))}
		play(t, c, func(t *testing.T, n *fakeNode, s *Source) {
			n.add(10, 11, 12, 13)
			ends := lasting(time.Minute, tt.answer)
			n.fault = func(c *fakeCall) bool { return (tt.method == "" || tt.method == c.Method) && ends(c) }
			if tt.want != "" {
				after(t, 50*time.Second, func() {
					ledgertest.Contains(t, s.Trouble(), tt.want, "%s: the trouble", name)
				})
			}
			wantSlots(t, follow(t, s, at(10), untilSlot(13)), 11, 12, 13)
			if g := s.Upstream(); g.Gaps != 0 || s.Trouble() != "" || n.calls["getBlocksWithLimit"] > 40 {
				t.Errorf("%s: figures: %+v, %q; %d calls", name, g, s.Trouble(), n.calls["getBlocksWithLimit"])
			}
			log := lines.String()
			told := strings.Count(log, "\n") == 2 && strings.Contains(log, "cannot be followed now") && strings.Contains(log, "followed again")
			if told != (tt.want != "") || strings.Contains(log, "secret") {
				t.Errorf("%s: the log says\n%s", name, log)
			}
		})
	}
}

// F29: of a chain on which the block that is held does not lie nothing is taken, and health is told.
func TestNothingIsTakenOfAnotherLedger(t *testing.T) {
	for name, prepare := range map[string]func(t *testing.T, n *fakeNode){
		"at once": func(_ *testing.T, n *fakeNode) { n.add(9, 10, 11, 12) },
		"once a ledger that began again has come past what is held": func(t *testing.T, n *fakeNode) {
			n.add(0, 1, 2, 3)
			after(t, time.Minute, func() { n.add(3, 10, 11) })
		},
		"by a block that does not say on which it builds": func(_ *testing.T, n *fakeNode) {
			n.add(9, 10, 11)
			n.blocks[11].previous = ledger.Hash{}
		},
	} {
		play(t, Config{Random: longest}, func(t *testing.T, n *fakeNode, s *Source) {
			prepare(t, n)
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
			defer cancel()
			r := &recorder{}
			if err := s.Run(ctx, &ledger.ResumePoint{Slot: 10, Blockhash: hashOf("other")}, r.emit); err != context.DeadlineExceeded || len(r.events) != 0 {
				t.Errorf("%s: err = %v after %d events", name, err, len(r.events))
			}
			ledgertest.Contains(t, s.Trouble(), upstream.WrongParent.Reason(), "%s: the trouble", name)
		})
	}
}

func TestPollsPolitely(t *testing.T) {
	play(t, Config{}, func(t *testing.T, n *fakeNode, s *Source) {
		n.add(10, 11)
		after(t, time.Minute, func() { n.add(11, 12) })
		follow(t, s, at(10), untilSlot(12))
		// A minute of looking each 400 ms, and for finality and the head each 1 and 2 s.
		if lists, slots := n.calls["getBlocksWithLimit"], n.calls["getSlot"]; lists > 152 || slots > 93 || lists < 140 {
			t.Errorf("%d getBlocks, %d getSlot in a minute", lists, slots)
		}
	})
}

// A transaction of a version that is not known here, and of a form that cannot be read, is left out and counted, and its block comes. So does
// one of which the node does not tell what it wrote.
func TestABlockComesWithoutWhatCannotBeReadOfIt(t *testing.T) {
	var log bytes.Buffer
	play(t, Config{Accounts: AccountsNone, Logger: slog.New(slog.NewTextHandler(&log, nil))}, func(t *testing.T, n *fakeNode, s *Source) {
		n.add(10, 11, 12, 13)
		n.blocks[11].fields = `,"transactions":[{"transaction":{"signatures":["5"],"message":[5]},"meta":{},"version":2}]`
		n.pay(12, 5, keyOf(1))
		n.blocks[12].fields = strings.Replace(n.blocks[12].fields, "postBalances", "notTold", 1)
		r := follow(t, s, at(10), untilSlot(13))
		wantSlots(t, r, 11, 12, 13)
		ledgertest.Equal(t, r.blocks()[0].TransactionCount, 1, "transactions that are counted")
		ledgertest.Equal(t, s.Upstream().Errors[upstream.Garbage], 2, "errors of that kind")
		ledgertest.Equal(t, strings.Count(log.String(), "version that is not known here"), 1, "lines about it in the log")
	})
}
