package stream

import (
	"bufio"
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/ledgertest"
)

// flood publishes blocks of 500 accounts until a condition holds.
func (n *node) flood(until func() bool) {
	for !until() {
		slot := n.script.nextSlot()
		n.script.block(slot, accounts(0, 500, ledger.Lamports(slot))...)
	}
}

// ended returns how many connections ended for a reason.
func (n *node) ended(why string) uint64 { return n.hub.meters.ends[why].Get() }

// socketBlocks is more than the sockets of a slow client hold, in blocks of a ring.
const socketBlocks = 16

// overflown reports whether some subscriber is about to end, or is lapped if it reads nothing.
func (n *node) overflown() bool {
	n.hub.mu.Lock()
	defer n.hub.mu.Unlock()
	for c := range n.hub.connections {
		if s := c.speaker.(*subscriber); s.outbox.isClosing() || s.ring != nil && s.ring.end().number() > socketBlocks+uint64(len(s.ring.slots)) {
			return true
		}
	}
	return false
}

// endsSlow reads up to the end, which must be that of a slow consumer, and returns the last seq it was
// told. Each update must follow the one before, the first of them a seq.
func (c *client) endsSlow(seq ledger.Seq) ledger.Seq {
	c.Helper()
	before, end := c.ends()
	for _, u := range readUpdates(c, before) {
		if seq++; u.Seq != seq {
			c.Fatalf("seq %d came, want %d: something is left out in the middle", u.Seq, seq)
		}
	}
	ledgertest.Equal(c, end, ending{codeSlow, fmt.Sprintf("slow consumer, last_seq=%d", seq)}, "the end")
	return seq
}

// F30: who is too slow is told all in order, at first what it has missed, up to where it was lapped, and then so, even if what is being
// written takes long. It can go on from there: newer updates of fewer accounts that it has heard do not count.
func TestTheSlowAreToldHowFarTheyCame(t *testing.T) {
	const flooded = 12_000
	programs := "&programs=" + programA.String()
	fewer := func(n *node, c *client) { c.send(`{"type":"subscribe","id":3,"pubkeys":%s}`, list(key(1))) }
	for name, tt := range map[string]struct {
		query  string
		missed ledger.Seq           // it wants to hear of so many updates that came before
		then   func(*node, *client) // before it stops to read
		change func(*Config)
	}{
		"everything":                  {query: "?extended=true"},
		"names":                       {query: "?extended=true" + programs},
		"conflating what is not kept": {query: "?extended=true&overflow=conflate", change: func(c *Config) { c.RecentBytes = 1 }},
		"from memory":                 {query: "?extended=true&resume_from=0", missed: 4_000},
		"from memory, then fewer":     {query: "?extended=true&resume_from=0", missed: 4_000, then: fewer},
		"from the log": {query: "?extended=true&resume_from=0", missed: 4_000, change: func(c *Config) {
			c.History, c.RecentBytes = &fakeHistory{}, 256<<10
		}},
		"later, more than before": {query: "?extended=true&pubkeys=" + key(1).String(), missed: 4_000, then: func(n *node, c *client) {
			n.script.block(n.script.nextSlot(), account(1, 1, programA))
			if told := readUpdates(n, c.settle()); len(told) != 1 || told[0].Seq != n.script.seq {
				n.Fatalf("told %v, want one update", told)
			}
			c.send(`{"type":"subscribe","id":1}`)
			c.next()
			c.send(`{"type":"resume","id":2,"from_seq":0}`)
			c.expect(resumed("2", 0))
		}},
		"nothing any more":             {query: "?extended=true" + programs, missed: 9_000, then: wantsNothing},
		"nothing any more, conflating": {query: "?extended=true&overflow=conflate" + programs, missed: 9_000, then: wantsNothing},
	} {
		inMemory(t, func(c *Config) {
			if c.RingBytes, c.OutboxBytes, c.RecentBytes = 256<<10, 256<<10, 10_000*updateBytes; tt.change != nil {
				tt.change(c)
			}
		}, func(n *node) {
			n.script.block(1, account(1, 1, programA))
			knows := n.script.seq
			if tt.missed > 0 {
				n.flood(func() bool { return n.script.seq >= tt.missed })
				knows = 0
			}
			c := n.dial(tt.query)
			if strings.Contains(tt.query, "resume") {
				c.expect(resumed("null", 0))
			}
			if tt.then != nil {
				tt.then(n, c)
			}
			n.flood(func() bool { return n.script.seq > tt.missed })
			synctest.Wait() // until a batch is being written
			n.flood(func() bool { return n.script.seq > tt.missed+flooded })
			c.r = bufio.NewReader(thinLine{c.conn, 4000})
			if knows = c.endsSlow(knows); tt.missed > 0 && knows >= tt.missed {
				n.Errorf("%s: it was told all up to %d", name, knows)
			}
			ledgertest.Equal(n, n.ended(endSlow.reason), 1, "%s: slow consumers counted", name)
		})
	}
}

// wantsNothing has a client go back and then take all names back: what it has missed is not held for it for ever.
func wantsNothing(n *node, c *client) {
	c.send(`{"type":"resume","id":1,"from_seq":0}`)
	c.send(`{"type":"unsubscribe","id":2,"all":true}`)
	c.expect(resumed("1", 0))
	synctest.Wait()
	n.wantMetric(`ledgerd_ws_subscribers{wants="nothing"} 1`)
}

// busy stages a block that changes many accounts, or now and then the way back over some.
func (s *script) busy(r *rand.Rand) {
	if len(s.chain) > 3 && r.IntN(8) == 0 {
		s.rollBack(s.chain[len(s.chain)-2-r.IntN(2)].tip.Slot)
	}
	var writes []ledger.Account
	for k := range 300 {
		a := account(r.IntN(3)*1000+k, ledger.Lamports(r.IntN(5)), []ledger.Pubkey{ledger.SystemProgram, programA}[r.IntN(2)])
		if was, ok := s.state[a.Pubkey]; a != was && (ok || a.Exists()) {
			writes = append(writes, a)
		}
	}
	s.slots++
	s.append(s.slots, writes...)
}

// readGaps checks the gap frames of a subscriber, takes them out, and counts them. Of what lies in a gap each
// account comes once, which is then its newest. Answers are taken out too: who was conflated gets them behind the
// gap they fell into.
func readGaps(t testing.TB, frames []string) (rest []string, gaps int) {
	t.Helper()
	var gap told
	newest := ledger.Seq(0)
	came := map[string]bool{}
	for _, text := range frames {
		f := parse(t, text)
		newest = max(newest, f.Seq)
		switch {
		case f.Type == "pong":
			continue
		case f.Type == "gap":
			if f.To < f.From || f.From < newest || text != string(appendGap(nil, f.From, f.To)) {
				t.Fatalf("gap frame %s, behind seq %d", text, newest)
			}
			gap = f
			clear(came)
			gaps++
			continue
		case f.Type != "account_update" && f.Seq < gap.To:
			if came[f.Type] {
				t.Fatalf("in the gap from %d to %d came %s, not the first", gap.From, gap.To, text)
			}
			came[f.Type] = true
		case f.Type == "account_update" && f.Seq > 0 && f.Seq <= gap.To:
			if f.Seq <= gap.From || came[f.Pubkey] {
				t.Fatalf("in the gap from %d to %d came %s, or twice", gap.From, gap.To, text)
			}
			came[f.Pubkey] = true
		}
		rest = append(rest, text)
	}
	return rest, gaps
}

// Whoever is too slow and asked for it misses states in between, is told where, and in the
// end knows the state.
func TestConflatedFramesFoldToTheState(t *testing.T) {
	names := "&programs=" + ledger.SystemProgram.String() + "," + programA.String()
	for _, query := range []string{"?extended=true&overflow=conflate", "?overflow=conflate", "?extended=true&overflow=conflate" + names} {
		for seed := range uint64(ledgertest.Sample(4, 2, 1)) {
			foldsToTheState(t, query, seed)
		}
	}
}

func foldsToTheState(t *testing.T, query string, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 6))
	inMemory(t, func(c *Config) { c.RingBytes, c.OutboxBytes = 512<<10, 1<<20 }, func(n *node) {
		n.script.slots = 1
		n.script.block(1)
		c := n.dial(query)
		knows := heard{state: state{}}
		gaps := 0
		take := func(frames []string) {
			frames, found := readGaps(n, frames)
			gaps += found
			knows.fold(n, frames)
		}
		for range 4 {
			for range 10 + r.IntN(40) {
				n.script.busy(r)
				n.script.publish()
				synctest.Wait() // blocks do not come faster than room is made
			}
			c.send(`{"type":"ping"}`)
			var part []string
			for range r.IntN(2000) {
				part = append(part, c.next())
				if strings.HasPrefix(part[len(part)-1], `{"type":"pong"`) {
					break
				}
			}
			take(part)
		}
		take(c.settle())
		want, tip := maps.Clone(n.script.state), n.script.chain[len(n.script.chain)-1].tip
		extended := strings.Contains(query, "extended")
		for k, a := range want {
			if !extended {
				want[k] = ledger.Account{Pubkey: k, Lamports: a.Lamports}
			}
		}
		if !maps.Equal(knows.state, want) {
			n.Errorf("%s, seed %d: folded to %d accounts that are not the %d of the ledger", query, seed, len(knows.state), len(want))
		}
		if extended && (knows.slot != tip.Slot || knows.seq != tip.Seq) {
			n.Errorf("%s, seed %d: stands at slot %d, seq %d, want %d, %d", query, seed, knows.slot, knows.seq, tip.Slot, tip.Seq)
		}
		if gaps == 0 {
			n.Errorf("%s, seed %d: nothing was conflated", query, seed)
		}
		n.wantMetric("ledgerd_ws_gaps_total %d", gaps)
		n.wantMetric("ledgerd_ws_laps_total 0")
		// Afterwards it is live, and told each update.
		for range 5 {
			n.script.slots++
			a := account(1, ledger.Lamports(100+n.script.slots), programA)
			n.script.block(n.script.slots, a)
			if got := c.next(); got != basicFrame(a, n.script.slots) && !strings.HasPrefix(got, strings.TrimSuffix(basicFrame(a, n.script.slots), "}")) {
				n.Errorf("told %s", got)
			}
			if extended {
				c.expect(slotEnd(n.script.slots, n.script.seq))
			}
		}
		_ = c.conn.Close()
	})
}
