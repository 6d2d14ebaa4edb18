package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"ledgerd/engine/cluster/natstest"
	"ledgerd/engine/ledger"
)

// testStandbyTakesOver cuts the writer off: a standby becomes the writer, and the one before learns of it, with a commit
// that it was making and without. One that ends gives the lease up.
func testStandbyTakesOver(t *testing.T, s *natstest.Servers) {
	random := rand.New(rand.NewPCG(3, 0))
	proxy := natstest.NewProxy(t, s.Addr(0))
	config := Config{Stream: "takeover", NodeID: "first", MayWrite: true}
	first := follow(t, open(t, []string{"nats://" + proxy.Addr()}, config), nil)
	first.writes()
	config.NodeID = "second"
	second := follow(t, open(t, s.URLs(), config), nil)
	first.mustCommit(random, 2, 10)
	second.waitFor(2)
	if got := first.Log().Behind(); got != 0 {
		t.Errorf("the writer is behind by %v", got)
	}

	proxy.Cut()
	late := make(chan error, 1)
	go func() { late <- first.commit(random, 1, 5) }()
	second.writes()
	second.mustCommit(random, 1, 1)
	eventually(t, "the one that was cut off says so", func() bool { return first.Log().Behind() > 0 && first.Trouble() != "" })
	proxy.Heal()
	if err := <-late; !errors.Is(err, ledger.ErrDeposed) {
		t.Fatalf("the late commit: err = %v, want %v", err, ledger.ErrDeposed)
	}
	<-first.Log().Deposed()

	// It starts again as a standby, from what it held.
	first.Close()
	config.NodeID = "first"
	again := follow(t, open(t, s.URLs(), config), first.has())
	again.waitFor(3)
	second.Close()
	again.writes()
	again.mustCommit(random, 1, 1)
	mustEqual(t, again.has()[:3], second.has())
	if got := &again.stats; Role(got.role.Load()) != Writer || got.epoch.Load() != 3 {
		t.Errorf("role %v in epoch %d", Role(got.role.Load()), got.epoch.Load())
	}

	// One that lives on gives its turn up. It was not deposed, and it is no writer.
	config.NodeID = "second"
	next := follow(t, open(t, s.URLs(), config), second.has())
	next.waitFor(4)
	again.Log().Resign()
	next.writes()
	next.mustCommit(random, 1, 1)
	if got := Role(again.stats.role.Load()); got != Reader {
		t.Errorf("who resigned is a %v", got)
	}
}

// testMinorityDoesNotCommit cuts the server that the writer and a reader talk to off from the others: the one that leads the
// stream, which goes on answering as if nothing were for a while.
func testMinorityDoesNotCommit(t *testing.T, s *natstest.Servers) {
	random := rand.New(rand.NewPCG(4, 0))
	config := Config{Stream: "minority", NodeID: "founder", MayWrite: true}
	founder := open(t, s.URLs(), config)
	_, info, err := founder.bind(t.Context())
	noErr(t, err)
	founder.Close()
	alone := s.Index(info.Cluster.Leader)
	config.NodeID = "w"
	w := follow(t, open(t, []string{s.URL(alone)}, config), nil)
	w.writes()
	reader := follow(t, open(t, []string{s.URL(alone)}, Config{Stream: "minority", NodeID: "r"}), nil)
	config.NodeID = "standby"
	standby := follow(t, open(t, []string{s.URL((alone + 1) % 3), s.URL((alone + 2) % 3)}, config), nil)
	w.mustCommit(random, 1, 10)
	reader.waitFor(1)
	standby.waitFor(1)

	s.Isolate(alone)
	late := make(chan error, 1)
	go func() { late <- w.commit(random, 1, 5) }()
	standby.writes()
	standby.mustCommit(random, 2, 3)
	eventually(t, "the minority says so", func() bool {
		return w.Trouble() != "" && reader.Trouble() != "" && w.Log().Behind() > leaseLength && reader.Log().Behind() > leaseLength
	})
	if got := pointAfter(reader.has()).Version; got != 1 {
		t.Fatalf("the minority holds version %d", got)
	}
	s.Heal()
	if err := <-late; !errors.Is(err, ledger.ErrDeposed) {
		t.Fatalf("the minority's commit: err = %v, want %v", err, ledger.ErrDeposed)
	}
	reader.waitFor(3)
	mustEqual(t, reader.has(), standby.has())
	eventually(t, "the reader knows that it holds everything", func() bool { return reader.Log().Behind() < 2*lookInterval && reader.Trouble() == "" })
}

// testServersAreKilled kills each server in turn under a writer that goes on: nothing that was acknowledged is lost, and
// nothing is there twice.
func testServersAreKilled(t *testing.T, s *natstest.Servers) {
	random := rand.New(rand.NewPCG(5, 0))
	w := follow(t, open(t, s.URLs(), Config{Stream: "killed", NodeID: "w", MayWrite: true}), nil)
	w.writes()
	reader := follow(t, open(t, s.URLs(), Config{Stream: "killed", NodeID: "r"}), nil)
	ctx, stop := context.WithCancel(t.Context())
	failed := make(chan error, 1)
	go func() {
		for ctx.Err() == nil {
			if err := w.commit(random, 1+random.IntN(2), random.IntN(3)*random.IntN(2000)); err != nil {
				failed <- err
				return
			}
			time.Sleep(5 * time.Millisecond) // a writer waits for its source
		}
		failed <- nil
	}()
	for i := range 3 {
		w.waitFor(pointAfter(w.has()).Version + 20)
		s.Kill(i)
		w.waitFor(pointAfter(w.has()).Version + 20)
		s.Restart(i)
		s.WaitReady()
	}
	stop()
	noErr(t, <-failed)
	reader.waitFor(pointAfter(w.has()).Version)
	mustEqual(t, reader.has(), w.has())
	fresh := follow(t, open(t, s.URLs(), Config{Stream: "killed", NodeID: "f"}), nil)
	fresh.waitFor(pointAfter(w.has()).Version)
	mustEqual(t, fresh.has(), w.has())
}

// testServerThatIsBehindIsAlone leaves one server that lacks messages. It answers what it holds: no node takes that for the log.
func testServerThatIsBehindIsAlone(t *testing.T, s *natstest.Servers) {
	random := rand.New(rand.NewPCG(6, 0))
	w := follow(t, open(t, s.URLs(), Config{Stream: "alone", NodeID: "w", MayWrite: true}), nil)
	w.writes()
	reader := follow(t, open(t, s.URLs(), Config{Stream: "alone", NodeID: "r"}), nil)
	w.mustCommit(random, 1, 10)
	s.Kill(0) // who was connected to it is not any more
	s.Restart(0)
	s.WaitReady()
	s.Isolate(0)
	w.mustCommit(random, 3, 10)
	reader.waitFor(4)
	s.Kill(1)
	s.Kill(2)
	late := make(chan error, 1)
	go func() { late <- w.commit(random, 1, 5) }()

	c, err := nats.Connect(s.URL(0))
	noErr(t, err)
	defer c.Close()
	eventually(t, "the one that is behind answers", func() bool {
		m, err := c.Request("$JS.API.STREAM.INFO.alone", nil, time.Second)
		if err != nil {
			return false
		}
		var answer struct{ State jetstream.StreamState }
		err = json.Unmarshal(m.Data, &answer)
		return err == nil && answer.State.LastSeq > 0 && answer.State.LastSeq < 3 // what the last commit is in
	})
	started := follow(t, open(t, s.URLs(), Config{Stream: "alone", NodeID: "s"}), w.has())
	for range 2 * goneLooks { // longer than a test has patience
		time.Sleep(lookInterval)
		select {
		case err := <-late:
			t.Fatalf("the commit ended: %v", err)
		case err := <-reader.ended:
			t.Fatalf("the reader ended: %v", err)
		case err := <-started.ended:
			t.Fatalf("one that was started ended: %v", err)
		default:
		}
	}
	for _, n := range []*node{w, reader, started} {
		if behind := n.Log().Behind(); behind < goneLooks*lookInterval || n.Trouble() == "" {
			t.Errorf("%s is behind by %v; its trouble: %q", n.config.NodeID, behind, n.Trouble())
		}
	}

	s.Heal()
	s.Restart(1)
	s.Restart(2)
	noErr(t, <-late)
	for _, n := range []*node{reader, started} {
		n.waitFor(5)
		mustEqual(t, n.has(), w.has())
	}
}
