package engine

import (
	"testing"
	"testing/synctest"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/bubbletest"
	"ledgerd/engine/ledger/ledgertest"
	"ledgerd/engine/sequencer"
	"ledgerd/snapshot/vfs/vfstest"
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
			var source ledger.Source // the first writes
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

// F53: TestFreshReplicaSaysFromWhereItHasHistory has replicas begin with nothing but the shared log, and with a snapshot of it. Each says from
// which slot on it holds blocks, alike wherever that is told: it answers every block from there on, and none below.
func TestFreshReplicaSaysFromWhereItHasHistory(t *testing.T) {
	bubbletest.Test(t, func(t *testing.T) {
		l, _, all := offering(t)
		chain := all[0].model.chain
		begin := func(o *offered, slots ledger.Slot, historyBytes int64) (from ledger.Slot) {
			t.Helper()
			disk := vfstest.NewMemory()
			if o != nil {
				must(t, o.begin(t.Context(), disk))
			}
			n := startMember(t, l, nil, onDisk(t, disk, Config{
				Shards: 2, Retention: sequencer.Retention{Slots: slots, Bytes: 1 << 30}, HistoryBytes: historyBytes,
			}))
			synctest.Wait()
			from = n.Stats().HistoryFrom
			page, _, err := n.Slots(ledger.Query{}, 0, chain[len(chain)-1].Slot, 1)
			must(t, err)
			transactions, _, err := n.Transactions(ledger.Query{}, ledger.TransactionRange{Limit: 1})
			must(t, err)
			ledgertest.Equal(t, [2]ledger.Slot{page.HistoryFrom, transactions.HistoryFrom}, [2]ledger.Slot{from, from}, "what lists of slots and of transactions say")
			for _, b := range chain {
				if _, _, err := n.Block(ledger.Query{}, b.Slot); (err == nil) != (b.Slot >= from) {
					t.Errorf("it says that it holds blocks from slot %d on; block %d: %v", from, b.Slot, err)
				}
			}
			n.mustStop()
			return from
		}
		for _, slots := range []ledger.Slot{10, 100_000} {
			for _, historyBytes := range []int64{0, 1 << 30} {
				var from []ledger.Slot
				for _, o := range []*offered{nil, &all[0], &all[len(all)/2], &all[len(all)-1]} {
					from = append(from, begin(o, slots, historyBytes))
				}
				keeps := slots > 10 || historyBytes > 0
				if whole := from[0] == chain[0].Slot; whole != keeps || keeps != (from[3] > from[2] && from[2] > from[0]) {
					t.Errorf("with %d slots in memory, %d bytes on disk, they have history from %d on", slots, historyBytes, from)
				}
			}
		}
	})
}
