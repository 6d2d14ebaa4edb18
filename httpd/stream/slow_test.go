package stream

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/ledgertest"
)

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
			if f.To < f.From || f.From < newest || text != fmt.Sprintf(`{"type":"gap","from_seq":%d,"to_seq":%d}`, f.From, f.To) {
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
	one := "?extended=true&overflow=conflate&programs=" + programA.String()
	for _, query := range []string{"?extended=true&overflow=conflate", "?overflow=conflate", one, one + "," + ledger.SystemProgram.String()} {
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
		at := n.script.chain[len(n.script.chain)-1]
		extended := strings.Contains(query, "extended")
		if !extended {
			at.state = maps.Clone(at.state)
			for k, a := range at.state {
				at.state[k] = ledger.Account{Pubkey: k, Lamports: a.Lamports}
			}
		}
		if strings.HasSuffix(query, programA.String()) { // others are told as they leave it, or have left in a gap
			at.state = maps.Clone(at.state)
			for _, known := range []state{at.state, knows.state} {
				maps.DeleteFunc(known, func(_ ledger.Pubkey, a ledger.Account) bool { return a.Owner != programA })
			}
		}
		knows.check(n, at)
		if extended && knows.seq != at.tip.Seq {
			n.Errorf("%s, seed %d: stands at seq %d, want %d", query, seed, knows.seq, at.tip.Seq)
		}
		if gaps == 0 {
			n.Errorf("%s, seed %d: nothing was conflated", query, seed)
		}
		n.wantMetric("ledgerd_ws_gaps_total %d", gaps)
		n.wantMetric("ledgerd_ws_closed_total{reason=%q} 0", "slow_consumer")
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
