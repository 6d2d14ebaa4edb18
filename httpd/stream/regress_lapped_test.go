package stream

import (
	"fmt"
	"testing"

	"ledgerd/engine/ledger"
)

// missed is how many updates those who come back have not heard: far more than their sockets hold.
const missed = 40_000

// publishMissed publishes them, each of an account of its own that no other block changes.
func (n *node) publishMissed() {
	accounts := make([]ledger.Account, 1000)
	for from := len(accounts); from <= missed; from += len(accounts) {
		for i := range accounts {
			accounts[i] = account(from+i, 1, programA)
		}
		n.script.block(n.script.nextSlot(), accounts...)
	}
}

// Who is lapped while it is told what it missed is told nothing behind that, and the last seq
// before: it can go on from there.
func TestAResumeThatIsLappedHasNoHole(t *testing.T) {
	tests := map[string]struct {
		log  bool
		then string // sent before the end
	}{
		"from memory":                     {},
		"from the log":                    {log: true},
		"and fewer accounts wanted later": {then: `{"type":"subscribe","id":3,"pubkeys":` + list(key(1)) + `}`},
	}
	for name, tt := range tests {
		var log *fakeHistory
		n := serve(t, func(c *Config) {
			if c.RingBytes = 256 << 10; tt.log {
				log = &fakeHistory{}
				c.History, c.RecentBytes = log, 256<<10
			}
		})
		n.script.history = log
		n.publishMissed()
		c := n.slow("?extended=true&resume_from=0")
		c.expect(resumed("null", 0))
		if tt.then != "" {
			c.send("%s", tt.then)
			eventually(t, "it is heard", func() bool { return n.says(`ledgerd_ws_subscribers{wants="keys"} 1`) })
		}
		if n.flood(func() bool { return n.script.seq > missed+20_000 }); tt.then == "" && !n.overflown() {
			t.Fatalf("%s: nobody was lapped", name)
		}
		before, code, text := c.ends()
		knows := ledger.Seq(0)
		for _, u := range readUpdates(t, before) {
			if u.Seq != knows+1 {
				t.Fatalf("%s: seq %d came after %d", name, u.Seq, knows)
			}
			knows = u.Seq
		}
		if want := fmt.Sprintf("slow consumer, last_seq=%d", knows); code != closeSlow || text != want || knows >= missed {
			t.Errorf("%s: ended with %d %q, want 4008 %q", name, code, text, want)
		}
	}
}

// Who names more, goes back to hear of that too, and is too slow for it, can go on from the
// last_seq it is told: that it has heard newer updates of fewer accounts does not count.
func TestLastSeqCountsFromTheLastResume(t *testing.T) {
	n := serve(t, func(c *Config) { c.RingBytes = 256 << 10 })
	n.publishMissed()
	c := n.slow("?extended=true&pubkeys=" + key(1).String())
	n.script.block(n.script.nextSlot(), account(1, 1, programA))
	if told := readUpdates(t, c.settle()); len(told) != 1 || told[0].Seq != missed+1 {
		t.Fatalf("told %v, want one update", told)
	}
	c.send(`{"type":"subscribe","id":1}`)
	c.next()
	c.send(`{"type":"resume","id":2,"from_seq":0}`)
	c.expect(resumed("2", 0))
	n.flood(n.overflown)
	before, code, text := c.ends()
	knows := ledger.Seq(0)
	for _, u := range readUpdates(t, before) {
		if u.Seq != knows+1 {
			t.Fatalf("seq %d came after %d", u.Seq, knows)
		}
		knows = u.Seq
	}
	if want := fmt.Sprintf("slow consumer, last_seq=%d", knows); code != closeSlow || text != want || knows >= missed {
		t.Errorf("ended with %d %q, want 4008 %q", code, text, want)
	}
}

// A conflating client that is lapped while it is told what it missed hears of every account that
// changed since, those it had not been told yet among them.
func TestConflationInTheMidstOfAResumeHidesNothing(t *testing.T) {
	n := serve(t, func(c *Config) { c.RingBytes = 256 << 10 })
	n.publishMissed()
	c := n.slow("?overflow=conflate&extended=true&resume_from=0")
	c.expect(resumed("null", 0))
	n.flood(n.overflown)
	heard := map[string]bool{}
	frames, gaps := readGaps(t, c.settle())
	for _, u := range readUpdates(t, frames) {
		heard[u.Pubkey] = true
	}
	if gaps == 0 {
		t.Fatal("nothing was conflated")
	}
	for k := range n.script.state {
		if !heard[k.String()] {
			t.Fatalf("%d of %d accounts were told; that of key %s is not among them", len(heard), len(n.script.state), k)
		}
	}
}
