package stream

import (
	"fmt"
	"testing"

	"ledgerd/engine/ledger"
)

func resumed(id string, from ledger.Seq) string {
	return fmt.Sprintf(`{"type":"resumed","id":%s,"from_seq":%d}`, id, from)
}

func resync(id string, oldest, newest ledger.Seq) string {
	return fmt.Sprintf(`{"type":"resync_required","id":%s,"oldest_seq":%d,"newest_seq":%d}`, id, oldest, newest)
}

// The answer comes before every frame that follows it, and none is missing or doubled.
func TestResumeIsExactWhileBlocksCome(t *testing.T) {
	n := serve(t, nil)
	n.script.block(1, account(1, 1, programA))
	turn := n.inTurns(60)
	for i := range 40 {
		turn()
		n.hub.mu.Lock()
		from := n.hub.delivered[ledger.Processed] + ledger.Seq(i%8*20)
		from -= min(from, 80)
		n.hub.mu.Unlock()
		c := n.dial(fmt.Sprintf("?extended=true&resume_from=%d", from))
		answer := parse(t, c.next())
		turn()
		next := from + 1
		if answer.Type == "resync_required" {
			next = answer.Newest + 1
		}
		for range 20 {
			u := parse(t, c.next())
			if u.Type != "account_update" {
				continue
			}
			if u.Seq != next {
				t.Fatalf("resumed from %d (%s, newest %d): seq %d came, want %d", from, answer.Type, answer.Newest, u.Seq, next)
			}
			next++
		}
		_ = c.conn.Close()
	}
}

// missed is how many updates those who come back have not heard: far more than their sockets hold.
const missed = 15_000

// publishMissed publishes them, each of an account of its own that no other block changes.
func (n *node) publishMissed() {
	const each = 1000
	for first := each; first <= missed; first += each {
		n.script.block(n.script.nextSlot(), accounts(first, each, 1)...)
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
		if knows := c.endsSlow(0); knows >= missed {
			t.Errorf("%s: it was told all up to %d", name, knows)
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
	if knows := c.endsSlow(0); knows >= missed {
		t.Errorf("it was told all up to %d", knows)
	}
}
