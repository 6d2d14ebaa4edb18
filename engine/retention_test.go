package engine

import (
	"testing"

	"ledgerd/engine/ledger"
	"ledgerd/engine/sequencer"
)

// F53: TestReplicasOfOtherRetentionsAgree has replicas that keep fewer and more slots than the writer follow it. They publish and answer what
// the writer does, of closed accounts too, and differ in the blocks they hold.
func TestReplicasOfOtherRetentionsAgree(t *testing.T) {
	eachStream(t, sample(20, 2, 1), func(t *testing.T, s stream, seed uint64, _ int) {
		g := s.generator(seed, true)
		l := newSharedLedger()
		l.info, l.filter, l.data = s.info, s.filter(), s.dataPrograms()
		var nodes []followed
		for i, slots := range []ledger.Slot{s.retention.Slots, 3, 30, 100_000} {
			retention := sequencer.Retention{Slots: slots, Bytes: s.retention.Bytes}
			var source Source // the first writes
			if i == 0 {
				source = newScript(s.info)
			}
			n := startMember(t, l, source, Config{Shards: 1 + i, Retention: retention})
			nodes = append(nodes, followed{n.subject, newComparer(t, g.r, g.m, retention)})
			if i == 0 {
				n.mustLead()
			}
		}
		for shown := 0; shown < streamEvents; {
			if e := g.next(); e != nil {
				shown++
				g.m.event(e)
				nodes[0].send(e)
			}
			for _, n := range nodes {
				n.publications(n.published)
			}
			if n := nodes[g.r.IntN(len(nodes))]; g.chance(20) && len(g.m.chain) > 0 {
				n.answers(n.Engine, nil)
			}
			pause(foldAfter / 4)
		}
		for _, n := range nodes {
			n.answers(n.Engine, nil)
		}
	})
}
