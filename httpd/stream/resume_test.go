package stream

import (
	"fmt"
	"testing"

	"ledgerd/engine/ledger"
)

func resumed(id string, from ledger.Seq) string {
	return fmt.Sprintf(`{"type":"resumed","id":%s,"from_seq":%d}`, id, from)
}

// The answer comes before every frame that follows it, and none is missing or doubled.
func TestResumeIsExactWhileBlocksCome(t *testing.T) {
	inMemory(t, nil, func(n *node) {
		n.script.block(1, account(1, 1, programA))
		turn := n.inTurns(60)
		for i := range 40 {
			turn()
			n.hub.mu.Lock()
			from := n.hub.delivered[ledger.Processed] + ledger.Seq(i%8*20)
			from -= min(from, 80)
			n.hub.mu.Unlock()
			c := n.dial(fmt.Sprintf("?extended=true&resume_from=%d", from))
			answer := parse(n, c.next())
			turn()
			next := from + 1
			if answer.Type == "resync_required" {
				next = answer.Newest + 1
			}
			for range 20 {
				u := parse(n, c.next())
				if u.Type != "account_update" {
					continue
				}
				if u.Seq != next {
					n.Fatalf("resumed from %d (%s, newest %d): seq %d came, want %d", from, answer.Type, answer.Newest, u.Seq, next)
				}
				next++
			}
			_ = c.conn.Close()
		}
	})
}
