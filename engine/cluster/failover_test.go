package cluster

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"ledgerd/engine/cluster/natstest"
	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/ledgertest"
)

// testStandbyTakesOver cuts the writer off: a standby becomes the writer, and the one before learns of it, with a commit
// that it was making and without. One that ends gives the lease up.
func testStandbyTakesOver(r *rig) {
	proxy := natstest.NewProxy(r, r.servers.Addr(0))
	first := r.follow(Config{Servers: []string{"nats://" + proxy.Addr()}, NodeID: "first", MayWrite: true}, nil)
	first.becomesWriter()
	second := r.follow(Config{NodeID: "second", MayWrite: true}, nil)
	began := time.Now()
	first.mustCommitBlocks(2)
	second.waitFor(2)
	eventually(r, "the standby hears who writes, and the first block", func() bool { return second.writer().Node == "first" && second.writer().Handover.First.Slot > 0 })
	ledgertest.Equal(r, second.writer().Handover, handover{First: written{Slot: 1, At: second.writer().Handover.First.At}}, "what the first writer took over")
	eventually(r, "the writer is behind by nothing", func() bool { return first.Log().Behind() == 0 })

	proxy.Cut()
	late := first.lateCommit(1, 5)
	second.becomesWriter()
	second.mustCommit(1, 1) // no block
	second.mustCommitBlocks(1)
	second.mustCommitBlocks(1)
	took := second.writer().Handover
	ledgertest.Equal(r, took, handover{From: "first", Last: written{2, took.Last.At}, First: written{4, took.First.At}}, "what was taken over")
	ledgertest.Holds(r, began.Before(took.Last.At) && took.Last.At.Add(leaseLength/2).Before(took.First.At) && took.First.At.Before(time.Now()), "written since %v: %v", began, took)
	eventually(r, "the one that was cut off says so", func() bool { return first.Log().Behind() > 0 && first.Trouble() != "" })
	proxy.Heal()
	ledgertest.ErrorIs(r, <-late, ledger.ErrDeposed, "the late commit")
	<-first.Log().Deposed()

	// It starts again as a standby, from what it held.
	first.Close()
	again := r.follow(Config{NodeID: "first", MayWrite: true}, first.has())
	again.waitFor(5)
	second.Close()
	again.becomesWriter()
	again.mustCommit(1, 1)
	mustEqual(r, again.has()[:5], second.has())
	if got := &again.stats; Role(got.role.Load()) != Writer || got.epoch.Load() != 3 {
		r.Errorf("role %v in epoch %d", Role(got.role.Load()), got.epoch.Load())
	}

	// One that lives on gives its turn up. It was not deposed, and it is no writer.
	next := r.follow(Config{NodeID: "second", MayWrite: true}, second.has())
	next.waitFor(6)
	eventually(r, "the standby hears who writes, and since when", func() bool {
		w := next.writer()
		return w.Node == "first" && w.Epoch == 3 && w.Since.Unix() > 0
	})
	again.Log().Resign()
	next.becomesWriter()
	next.mustCommit(1, 1)
	ledgertest.Equal(r, Role(again.stats.role.Load()), Reader, "what it is that resigned")
}

// testMinorityDoesNotCommit cuts the server that the writer and a reader talk to off from the others: the one that leads the
// stream, which goes on answering as if nothing were for a while.
func testMinorityDoesNotCommit(r *rig) {
	s := r.servers
	founder := r.open(Config{NodeID: "founder", MayWrite: true})
	_, info, err := founder.bind(r.Context())
	must(r, err)
	founder.Close()
	alone := slices.Index([]string{"s0", "s1", "s2"}, info.Cluster.Leader)
	urls := []string{s.URL(alone)}
	w := r.follow(Config{Servers: urls, NodeID: "w", MayWrite: true}, nil)
	w.becomesWriter()
	reader := r.follow(Config{Servers: urls, NodeID: "r"}, nil)
	others := []string{s.URL((alone + 1) % 3), s.URL((alone + 2) % 3)}
	standby := r.follow(Config{Servers: others, NodeID: "standby", MayWrite: true}, nil)
	w.mustCommit(1, 10)
	reader.waitFor(1)
	standby.waitFor(1)

	s.Isolate(alone)
	late := w.lateCommit(1, 5)
	standby.becomesWriter()
	standby.mustCommit(2, 3)
	eventually(r, "the minority says so", func() bool {
		return w.Trouble() != "" && reader.Trouble() != "" && w.Log().Behind() > leaseLength && reader.Log().Behind() > leaseLength
	})
	ledgertest.Equal(r, reader.version(), 1, "the version that the minority holds")
	s.Heal()
	ledgertest.ErrorIs(r, <-late, ledger.ErrDeposed, "the minority's commit")
	reader.mustReach(standby)
	eventually(r, "the reader knows that it holds everything", func() bool { return reader.Log().Behind() < 2*lookInterval && reader.Trouble() == "" })
}

// testServersAreKilled kills each server in turn under a writer that goes on: nothing that was acknowledged is lost, and
// nothing is there twice.
func testServersAreKilled(r *rig) {
	w, reader := r.writer("w"), r.reader("r")
	ctx, stop := context.WithCancel(r.Context())
	failed := make(chan error, 1)
	go func() {
		for ctx.Err() == nil {
			if err := w.commit(1+r.random.IntN(2), r.random.IntN(3)*r.random.IntN(2000)); err != nil {
				failed <- err
				return
			}
			time.Sleep(5 * time.Millisecond) // a writer waits for its source
		}
		failed <- nil
	}()
	for i := range 3 {
		w.waitFor(w.version() + 10)
		r.servers.Kill(i)
		w.waitFor(w.version() + 10)
		r.servers.Restart(i)
		r.servers.WaitReady()
	}
	stop()
	must(r, <-failed)
	reader.mustReach(w)
	r.reader("fresh").mustReach(w)
}

// testServerThatIsBehindIsAlone leaves one server that lacks messages. It answers what it holds: no node takes that for the log.
func testServerThatIsBehindIsAlone(r *rig) {
	s := r.servers
	w, reader := r.writer("w"), r.reader("r")
	w.mustCommit(1, 10)
	s.Kill(0) // who was connected to it is not any more
	s.Restart(0)
	s.WaitReady()
	s.Isolate(0)
	w.mustCommit(3, 10)
	reader.waitFor(4)
	s.Kill(1)
	s.Kill(2)
	late := w.lateCommit(1, 5)

	c, err := nats.Connect(s.URL(0))
	must(r, err)
	defer c.Close()
	eventually(r, "the one that is behind answers", func() bool {
		m, err := c.Request("$JS.API.STREAM.INFO."+r.stream, nil, time.Second)
		if err != nil {
			return false
		}
		var answer struct{ State jetstream.StreamState }
		err = json.Unmarshal(m.Data, &answer)
		return err == nil && answer.State.LastSeq > 0 && answer.State.LastSeq < 3 // what the last commit is in
	})
	started := r.follow(Config{NodeID: "s"}, w.has())
	const enough = 3 * lookInterval // to be believed, were it from a quorum: in a test that takes two seconds
	for _, n := range []*node{w, reader, started} {
		eventually(r, n.config.NodeID+" has long known of no end of the log", func() bool {
			return n.Log().Behind() > enough && n.Trouble() != ""
		})
	}
	select {
	case err := <-late:
		r.Fatalf("the commit ended: %v", err)
	case err := <-reader.ended:
		r.Fatalf("the reader ended: %v", err)
	case err := <-started.ended:
		r.Fatalf("one that was started ended: %v", err)
	default:
	}

	s.Heal()
	s.Restart(1)
	s.Restart(2)
	must(r, <-late)
	reader.mustReach(w)
	started.mustReach(w)
}
