package stream

import (
	"bufio"
	"fmt"
	"testing"

	"ledgerd/engine/ledger"
)

// What a client has missed is not held for it for ever: who names much, goes back, wants nothing
// any more and reads a little now and then is slow once all of that is not kept any more.
func TestABacklogIsNotHeldForEver(t *testing.T) {
	for _, query := range []string{"?extended=true&programs=" + programA.String(), "?extended=true&overflow=conflate&programs=" + programA.String()} {
		inMemory(t, func(c *Config) { c.RecentBytes = 10_000 * updateBytes }, func(n *node) {
			n.flood(func() bool { return n.script.seq >= 9_000 })
			c := n.dial(query)
			c.send(`{"type":"resume","id":1,"from_seq":0}`)
			c.send(`{"type":"unsubscribe","id":2,"all":true}`)
			c.expect(resumed("1", 0))
			eventually(n, "it wants nothing", func() bool { return n.says(`ledgerd_ws_subscribers{wants="nothing"} 1`) })
			n.flood(func() bool { return n.script.seq >= 30_000 })
			c.r = bufio.NewReader(thinLine{c.conn})
			before, code, text := c.ends()
			knows := ledger.Seq(0)
			for _, u := range readUpdates(t, before) {
				if u.Seq != knows+1 {
					n.Fatalf("%s: seq %d came after %d", query, u.Seq, knows)
				}
				knows = u.Seq
			}
			if want := fmt.Sprintf("slow consumer, last_seq=%d", knows); code != closeSlow || text != want || knows >= 9_000 {
				n.Errorf("%s: ended with %d %q, want 4008 %q", query, code, text, want)
			}
		})
	}
}
