package stream

import (
	"maps"
	"math/rand/v2"
	"strings"
	"testing"

	"ledgerd/engine/ledger"
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
func readGaps(t *testing.T, frames []string) (rest []string, gaps int) {
	t.Helper()
	var gap told
	came := map[string]bool{}
	for _, text := range frames {
		f := parse(t, text)
		switch {
		case f.Type == "pong":
			continue
		case f.Type == "gap":
			if f.To < f.From || text != string(appendGap(nil, f.From, f.To)) {
				t.Fatalf("gap frame %s", text)
			}
			gap = f
			clear(came)
			gaps++
			continue
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
		for seed := range uint64(2) {
			r := rand.New(rand.NewPCG(seed, 6))
			n := serve(t, func(c *Config) { c.RingBytes, c.OutboxBytes = 512<<10, 1<<20 })
			n.script.slots = 1
			n.script.block(1)
			c := n.slow(query)
			knows := heard{state: state{}}
			gaps := 0
			take := func(frames []string) {
				frames, found := readGaps(t, frames)
				gaps += found
				knows.fold(t, frames)
			}
			for range 4 {
				for range 10 + r.IntN(120) {
					n.script.busy(r)
					n.script.publish()
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
				t.Errorf("%s, seed %d: folded to %d accounts that are not the %d of the ledger", query, seed, len(knows.state), len(want))
			}
			if extended && (knows.slot != tip.Slot || knows.seq != tip.Seq) {
				t.Errorf("%s, seed %d: stands at slot %d, seq %d, want %d, %d", query, seed, knows.slot, knows.seq, tip.Slot, tip.Seq)
			}
			if gaps == 0 {
				t.Errorf("%s, seed %d: nothing was conflated", query, seed)
			}
			n.wantMetric("ledgerd_ws_gaps_total %d", gaps)
			n.wantMetric("ledgerd_ws_laps_total 0")
			// Afterwards it is live, and told each update.
			for range 5 {
				n.script.slots++
				a := account(1, ledger.Lamports(100+n.script.slots), programA)
				n.script.block(n.script.slots, a)
				if got := c.next(); got != basicFrame(a, n.script.slots) && !strings.HasPrefix(got, strings.TrimSuffix(basicFrame(a, n.script.slots), "}")) {
					t.Errorf("%s: told %s", query, got)
				}
				if extended {
					c.expect(slotEnd(n.script.slots, n.script.seq))
				}
			}
			_ = c.conn.Close()
		}
	}
}

// What is not kept cannot be conflated.
func TestWhoMissesMoreThanIsKeptIsClosed(t *testing.T) {
	n := serve(t, func(c *Config) { c.RingBytes, c.RecentBytes = 256<<10, 1 })
	c := n.slow("?extended=true&overflow=conflate")
	n.flood(n.overflown)
	c.endsSlow(0)
}
