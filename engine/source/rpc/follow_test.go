package rpc

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"ledgerd/engine/ledger"
	"ledgerd/engine/source/upstream"
)

func TestFollowsTheChainFromWhereItIsHeld(t *testing.T) {
	play(t, Config{}, func(t *testing.T, n *fakeNode, s *Source) {
		n.add(10, 11, 12, 15, 16, 20)
		after(t, 3*time.Second, func() { n.add(20, 21, 25) })
		r := follow(t, s, at(10), untilSlot(25))
		wantSlots(t, r, 11, 12, 15, 16, 20, 21, 25)
		wantChain(t, r)
		if g := s.Upstream(); g.Gaps != 0 || g.SealedSlot != 25 || g.Blocks != 7 || !g.Connected || s.Trouble() != "" {
			t.Errorf("figures: %+v, %q", g, s.Trouble())
		}
	})
}

func TestWhereAFreshNodeBegins(t *testing.T) {
	from := func(slot ledger.Slot) Config { return Config{From: ledger.Some(slot)} }
	tests := map[string]struct {
		config Config
		first  ledger.Slot // that the node keeps
		want   []ledger.Slot
	}{
		"newest":             {want: []ledger.Slot{120, 121}},
		"slot 0":             {from(0), 0, []ledger.Slot{5, 6, 7, 100, 120, 121}},
		"slot 6":             {from(6), 0, []ledger.Slot{6, 7, 100, 120, 121}},
		"slot 8":             {from(8), 0, []ledger.Slot{100, 120, 121}},
		"not kept":           {from(1), 300, []ledger.Slot{300, 301}},
		"long not kept":      {from(1), 3000, []ledger.Slot{3000, 3001}},
		"very long not kept": {from(1), 3_000_000, []ledger.Slot{3_000_000, 3_000_001}},
	}
	for name, tt := range tests {
		play(t, tt.config, func(t *testing.T, n *fakeNode, s *Source) {
			n.add(4, 5, 6, 7, 100, 120)
			n.first = tt.first
			newest := ledger.Slot(120)
			if tt.first > 0 {
				newest = tt.first
				n.add(120, newest-1, newest)
			}
			after(t, time.Minute, func() {
				if s.Trouble() != "" {
					t.Errorf("%s: trouble %q", name, s.Trouble())
				}
				n.add(newest, newest+1)
			})
			wantSlots(t, follow(t, s, nil, untilSlot(newest+1)), tt.want...)
			if g := s.Upstream(); g.Gaps != 0 || s.Trouble() != "" {
				t.Errorf("%s: figures: %+v, %q", name, g, s.Trouble())
			}
		})
	}
}

// A slot that cannot be had is skipped only where the next block's parent link says so.
func TestMissingBlocksAreNotTakenForSkipped(t *testing.T) {
	codes := map[string]int{
		"skipped": -32007, "skipped long-term": -32009, "not yet": -32004,
		"cleaned up": -32001, "unhealthy": -32005, "failed": -32000,
	}
	for name, code := range codes {
		play(t, Config{Random: longest}, func(t *testing.T, n *fakeNode, s *Source) {
			n.add(10, 11, 12, 13, 14)
			begun := time.Now()
			n.fault = onBlock(12, lasting(30*time.Second, fails(code)))
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

// While a node does not answer, health and the log say why, nothing is taken for missing, and the node is not hammered.
func TestFailuresAreToldAndAreNoGap(t *testing.T) {
	const garbled = "what the node sent could not be understood"
	tests := map[string]struct {
		method string // "" for all
		answer answer
		want   string
	}{
		"no history":         {"", fails(-32011), "the node refused access"},
		"no access":          {"", says(403, ""), "the node refused access"},
		"garbage":            {"", says(200, "<html>"), garbled},
		"limited":            {"", says(429, ""), "the node limits our requests"},
		"told when":          {"", says(429, "", "Retry-After", "7"), "the node limits our requests, asked to wait 7 s"},
		"no list":            {"getBlocks", says(500, ""), "no block can be had since"},
		"a list refused":     {"getBlocks", fails(-32602), "no block can be had since"},
		"no list but HTML":   {"getBlocks", says(200, "<html>"), garbled},
		"block: no answer":   {"getBlock", hangsUp, "the node closed the connection"},
		"block: limited":     {"getBlock", says(429, "", "Retry-After", "1"), "the node limits our requests"},
		"slot: no answer":    {"getSlot", says(502, ""), ""},
		"everything is down": {"", says(502, ""), "no block can be had since"},
	}
	for name, tt := range tests {
		var lines strings.Builder
		c := Config{Random: longest, Logger: slog.New(slog.NewTextHandler(&lines, nil))}
		play(t, c, func(t *testing.T, n *fakeNode, s *Source) {
			n.add(10, 11, 12, 13)
			ends := lasting(time.Minute, tt.answer)
			n.fault = func(c *fakeCall) bool { return (tt.method == "" || tt.method == c.Method) && ends(c) }
			if tt.want != "" {
				after(t, 50*time.Second, func() {
					if got := s.Trouble(); !strings.Contains(got, tt.want) {
						t.Errorf("%s: trouble is %q", name, got)
					}
				})
			}
			wantSlots(t, follow(t, s, at(10), untilSlot(13)), 11, 12, 13)
			if g := s.Upstream(); g.Gaps != 0 || s.Trouble() != "" || n.calls["getBlocks"] > 40 {
				t.Errorf("%s: figures: %+v, %q; %d calls", name, g, s.Trouble(), n.calls["getBlocks"])
			}
			log := lines.String()
			told := strings.Count(log, "\n") == 2 && strings.Contains(log, "cannot be followed now") && strings.Contains(log, "followed again")
			if told != (tt.want != "") || strings.Contains(log, "secret") {
				t.Errorf("%s: the log says\n%s", name, log)
			}
		})
	}
}

// The list of slots is a hint: it may hold slots that were skipped, and leave blocks out.
func TestAWrongListIsNoGap(t *testing.T) {
	for _, list := range []string{"[11,12,13,14,15]", "[15]"} {
		play(t, Config{}, func(t *testing.T, n *fakeNode, s *Source) {
			n.add(10, 11, 14, 15)
			n.fault = on("getBlocks", func(c *fakeCall) bool { return c.slot(0) == 11 && gives(list)(c) })
			r := follow(t, s, at(10), untilSlot(15))
			wantSlots(t, r, 11, 14, 15)
			wantChain(t, r)
			if g := s.Upstream(); g.Gaps != 0 {
				t.Errorf("%s: figures: %+v", list, g)
			}
		})
	}
}

// At the tip a node lists what it cannot answer for a moment, and a balancer may ask one that is behind twice.
func TestABlockThatIsNotThereYetIsNoGap(t *testing.T) {
	for d, errors := range map[time.Duration]uint64{150 * time.Millisecond: 1, 500 * time.Millisecond: 3} {
		play(t, Config{}, func(t *testing.T, n *fakeNode, s *Source) {
			n.add(10, 11, 12)
			n.fault = onBlock(12, lasting(d, fails(-32004)))
			wantSlots(t, follow(t, s, at(10), untilSlot(12)), 11, 12)
			if g := s.Upstream(); g.Gaps != 0 || g.Errors[upstream.Unavailable] != errors {
				t.Errorf("for %v: figures: %+v", d, g)
			}
		})
	}
}

func TestABlockWithAWrongParentIsAskedForAgain(t *testing.T) {
	tests := map[string]fakeBlock{
		"another hash":  {slot: 12, parent: 11, hash: hashOf("12"), previous: hashOf("x")},
		"another slot":  {slot: 12, parent: 10, hash: hashOf("12"), previous: hashOf("10")},
		"an early slot": {slot: 12, parent: 3, hash: hashOf("12"), previous: hashOf("3")},
	}
	for name, wrong := range tests {
		play(t, Config{Parallel: 1}, func(t *testing.T, n *fakeNode, s *Source) { // calls come one after the other
			n.add(10, 11, 12, 13)
			n.fault = onBlock(12, times(1, gives(wrong.json())))
			r := follow(t, s, at(10), untilSlot(13))
			wantSlots(t, r, 11, 12, 13)
			wantChain(t, r)
			if g := s.Upstream(); g.Errors[upstream.WrongParent] != 1 || g.Errors[upstream.Equivocation] != 0 {
				t.Errorf("%s: figures: %+v", name, g.Errors)
			}
		})
	}
}

// A block that the node showed and then replaced is taken back: the other one comes as a fork, and what is known of its
// accounts is asked for again.
func TestAReplacedBlockIsTakenBack(t *testing.T) {
	play(t, Config{Parallel: 1}, func(t *testing.T, n *fakeNode, s *Source) {
		n.add(10, 11, 12)
		n.pay(12, 500, keyOf(1))
		n.hold(keyOf(1), 500, ledger.VoteProgram, nil)
		twin := fakeBlock{slot: 12, parent: 11, hash: hashOf("twin"), previous: hashOf("11"), fields: n.blocks[12].fields}
		n.fault = onBlock(12, times(1, gives(twin.json())))
		after(t, 2*time.Second, func() { n.add(12, 13) })
		r := follow(t, s, at(10), untilSlot(13))
		wantSlots(t, r, 11, 12, 12, 13)
		if blocks := r.blocks(); blocks[1].Blockhash != twin.hash || blocks[2].Blockhash != hashOf("12") || len(n.asked) != 2 {
			t.Errorf("the twins came as %v and %v, asked for %v", blocks[1].Blockhash, blocks[2].Blockhash, n.asked)
		}
		if g := s.Upstream(); g.Errors[upstream.Equivocation] != 1 {
			t.Errorf("figures: %+v", g.Errors)
		}
	})
}

// Behind a balancer the node may be replaced by one on another branch.
func TestGoesBackToWhereTheNodeAgrees(t *testing.T) {
	play(t, Config{}, func(t *testing.T, n *fakeNode, s *Source) {
		n.add(10, 11, 12, 13)
		after(t, 3*time.Second, func() {
			n.locked(func() {
				delete(n.blocks, 12)
				delete(n.blocks, 13)
			})
			n.add(11, 14, 15)
		})
		r := follow(t, s, at(10), untilSlot(15))
		wantSlots(t, r, 11, 12, 13, 14, 15)
		if last := r.blocks()[3]; last.ParentSlot != 11 {
			t.Errorf("block 14 builds on %d", last.ParentSlot)
		}
	})
}

func TestAnotherLedgerIsRefused(t *testing.T) {
	tests := map[string]func(t *testing.T, n *fakeNode){
		"at once": func(_ *testing.T, n *fakeNode) { n.add(9, 10, 11, 12) },
		"once a ledger that began again has come past what is held": func(t *testing.T, n *fakeNode) {
			n.add(0, 1, 2, 3)
			after(t, time.Minute, func() { n.add(3, 10, 11) })
		},
		"by a block that does not say on which it builds": func(_ *testing.T, n *fakeNode) {
			n.add(9, 10, 11)
			n.blocks[11].previous = ledger.Hash{}
		},
	}
	for name, prepare := range tests {
		play(t, Config{}, func(t *testing.T, n *fakeNode, s *Source) {
			prepare(t, n)
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			r := &recorder{}
			err := s.Run(ctx, &ledger.ResumePoint{Slot: 10, Blockhash: hashOf("other")}, r.emit)
			if err == nil || !strings.Contains(err.Error(), "is final here: "+upstream.ErrOtherChain.Error()) || len(r.events) != 0 {
				t.Errorf("%s: err = %v after %d events", name, err, len(r.events))
			}
		})
	}
}

// A block that does not say on which block it builds is believed to build on the one before only if the node has that one.
func TestABlockWithoutItsParentsHashIsChecked(t *testing.T) {
	play(t, Config{}, func(t *testing.T, n *fakeNode, s *Source) {
		n.add(9, 10, 11, 12)
		n.blocks[11].previous = ledger.Hash{}
		r := follow(t, s, at(10), untilSlot(12))
		wantSlots(t, r, 11, 12)
		wantChain(t, r)
	})
}

// A node that names another hash with each call proves nothing: it is asked on, and health is told.
func TestANodeThatContradictsItselfIsNoOtherLedger(t *testing.T) {
	for name, from := range map[string]*ledger.ResumePoint{"fresh": nil, "resumed": at(10)} {
		play(t, Config{}, func(t *testing.T, n *fakeNode, s *Source) {
			n.add(9, 10, 11)
			n.fault = on("getBlock", func(*fakeCall) bool {
				for _, b := range n.blocks {
					b.hash, b.previous = hashOf(fmt.Sprint(n.calls)), hashOf(fmt.Sprint("before", n.calls))
				}
				return false
			})
			go n.goOn(11, 200)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if err := s.Run(ctx, from, (&recorder{}).emit); err != context.DeadlineExceeded {
				t.Errorf("%s: Run: err = %v", name, err)
			}
			if got := s.Trouble(); !strings.Contains(got, upstream.WrongParent.Reason()) || !strings.Contains(got, "slots ahead") {
				t.Errorf("%s: trouble is %q", name, got)
			}
		})
	}
}

func TestPollsPolitely(t *testing.T) {
	play(t, Config{}, func(t *testing.T, n *fakeNode, s *Source) {
		n.add(10, 11)
		after(t, time.Minute, func() { n.add(11, 12) })
		follow(t, s, at(10), untilSlot(12))
		// A minute of looking each 400 ms, and for finality and the head each 1 and 2 s.
		if lists, slots := n.calls["getBlocks"], n.calls["getSlot"]; lists > 152 || slots > 93 || lists < 140 {
			t.Errorf("%d getBlocks, %d getSlot in a minute", lists, slots)
		}
	})
}
