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

// readGaps checks the gap frames of a subscriber, takes them out, and counts them. Answers
// are taken out too: who was conflated gets them behind the gap they fell into.
func readGaps(t *testing.T, frames []string) (rest []string, gaps int) {
	t.Helper()
	for _, text := range frames {
		switch f := parse(t, text); {
		case f.Type == "pong":
		case f.Type != "gap":
			rest = append(rest, text)
		case f.To < f.From || text != string(appendGap(nil, f.From, f.To)):
			t.Fatalf("gap frame %s", text)
		default:
			gaps++
		}
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
				for range r.IntN(2000) { // part of it
					got := c.next()
					if take([]string{got}); strings.HasPrefix(got, `{"type":"pong"`) {
						break
					}
				}
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

// For whoever has seen a seq, a digest is exactly the accounts that changed later, each as it
// changed last, in the order of that.
func TestADigestIsTheNewestOfWhatChanged(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	var emissions []*emission
	var updates []ledger.Update // numbered from 1
	for slot := range ledger.Slot(30) {
		e := &emission{slot: slot, time: at(slot), firstSeq: ledger.Seq(len(updates)) + 1}
		for _, k := range r.Perm(20)[:r.IntN(6)] {
			e.updates = append(e.updates, ledger.Update{Account: account(k, ledger.Lamports(slot)+1, programA)})
		}
		updates = append(updates, e.updates...)
		e.lastSeq = ledger.Seq(len(updates))
		emissions = append(emissions, e)
	}
	for seen := range ledger.Seq(len(updates) + 1) {
		newest := map[ledger.Pubkey]int{}
		for i := int(seen); i < len(updates); i++ {
			newest[updates[i].Account.Pubkey] = i
		}
		var want []byte
		for i := int(seen); i < len(updates); i++ {
			if newest[updates[i].Account.Pubkey] == i {
				e := &emission{updates: updates[i : i+1], time: at(ledger.Slot(updates[i].Account.Lamports) - 1)}
				want = e.appendPart(want, basic, 0)
			}
		}
		b := &backlog{emissions: emissions, seen: seen, wants: wants{everything: true}, gap: gapPacket(seen, 0)}
		new(Hub).findStale(b)
		var got []byte
		for e, part := range b.parts {
			got = e.appendPart(got, basic, part)
		}
		if string(got) != string(want) {
			t.Errorf("seen %d: told\n %q\nwant\n %q", seen, got, want)
		}
	}
}

// What is not kept cannot be conflated.
func TestWhoMissesMoreThanIsKeptIsClosed(t *testing.T) {
	n := serve(t, func(c *Config) { c.RingBytes, c.RecentBytes = 256<<10, 1 })
	c := n.slow("?extended=true&overflow=conflate")
	n.flood(n.overflown)
	if _, code, _ := c.ends(); code != codeSlow {
		t.Errorf("ended with %d, want %d", code, codeSlow)
	}
}
