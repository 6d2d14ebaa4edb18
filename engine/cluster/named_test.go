package cluster

import (
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"ledgerd/engine/cluster/natstest"
	"ledgerd/engine/ledger"
)

// named opens a node that follows from what it holds and expects why it cannot.
func named(t *testing.T, s *natstest.Servers, config Config, held []*ledger.Record, want error) {
	t.Helper()
	n := follow(t, open(t, s.URLs(), config), held)
	if err := n.end(); !errors.Is(err, want) {
		t.Errorf("from version %d: err = %v, want %v", pointAfter(held).Version, err, want)
	}
	n.Close()
}

// testChangedStreamIsNamed purges the stream, lacks what a node holds, deletes it and makes it anew.
func testChangedStreamIsNamed(t *testing.T, s *natstest.Servers) {
	random := rand.New(rand.NewPCG(6, 0))
	w := follow(t, open(t, s.URLs(), Config{Stream: "named", NodeID: "w", MayWrite: true}), nil)
	w.writes()
	live := follow(t, open(t, s.URLs(), Config{Stream: "named", NodeID: "live"}), nil)
	for range 6 {
		w.mustCommit(random, 2, 3)
	}
	live.waitFor(12)
	id, _, err := w.Facts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	config := Config{Stream: "named", NodeID: "n", LedgerID: id}

	more := append(w.has(), commitOf(random, pointAfter(w.has()), 3, 1)...)
	named(t, s, config, more, ErrShortened)
	other := commitOf(random, ledger.LogPoint{}, 5, 1)
	named(t, s, config, other, ErrOtherLedger)
	config.LedgerID = "another"
	named(t, s, config, w.has(), ErrRecreated)
	config.LedgerID = id

	stream, err := w.js.Stream(t.Context(), "named")
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Purge(t.Context(), jetstream.WithPurgeSequence(4)); err != nil { // claim and two commits are gone
		t.Fatal(err)
	}
	for held := range 4 {
		named(t, s, config, w.has()[:held], ErrPurged)
	}
	for _, held := range []int{4, 5, 6, 12} {
		n := follow(t, open(t, s.URLs(), config), w.has()[:held])
		n.waitFor(12)
		n.Close()
	}
	// One that cannot reach the servers while messages that it needs are purged learns of it, though none follows.
	proxy := natstest.NewProxy(t, s.Addr(0))
	late := follow(t, open(t, []string{"nats://" + proxy.Addr()}, config), w.has())
	late.waitFor(12)
	eventually(t, "it holds the whole log", func() bool { return late.Log().Behind() < lookInterval })
	proxy.Cut()
	w.mustCommit(random, 1, 1)
	live.waitFor(13)
	if err := stream.Purge(t.Context()); err != nil {
		t.Fatal(err)
	}
	proxy.Heal()
	if err := late.end(); !errors.Is(err, ErrPurged) {
		t.Errorf("who was cut off while the stream was purged: err = %v, want %v", err, ErrPurged)
	}
	named(t, s, config, w.has()[:12], ErrPurged)
	named(t, s, config, w.has(), ErrPurged)
	w.mustCommit(random, 1, 1) // who followed all the time goes on
	live.waitFor(14)

	if err := w.js.DeleteStream(t.Context(), "named"); err != nil {
		t.Fatal(err)
	}
	named(t, s, config, w.has(), ErrRecreated)
	fresh := follow(t, open(t, s.URLs(), Config{Stream: "named", NodeID: "fresh", MayWrite: true}), nil)
	if err := live.end(); !errors.Is(err, ErrRecreated) {
		t.Errorf("who followed when it was deleted: err = %v, want %v", err, ErrRecreated)
	}
	if _, _, err := fresh.Facts(t.Context()); err != nil {
		t.Fatal(err)
	}
	named(t, s, config, w.has(), ErrRecreated)
	if err := w.commit(random, 1, 1); !errors.Is(err, ErrRecreated) {
		t.Errorf("the writer: err = %v, want %v", err, ErrRecreated)
	}
}

// testRepeatedMessageIsRefused sends a message again.
func testRepeatedMessageIsRefused(t *testing.T, s *natstest.Servers) {
	random := rand.New(rand.NewPCG(7, 0))
	w := follow(t, open(t, s.URLs(), Config{Stream: "repeated", NodeID: "w", MayWrite: true}), nil)
	w.writes()
	reader := follow(t, open(t, s.URLs(), Config{Stream: "repeated", NodeID: "r"}), nil)
	w.mustCommit(random, 1, 3)
	w.mustCommit(random, 1, 3)
	stream, err := w.js.Stream(t.Context(), "repeated")
	if err != nil {
		t.Fatal(err)
	}
	again, err := stream.GetMsg(t.Context(), 2)
	if err != nil {
		t.Fatal(err)
	}
	if id := again.Header.Get(jetstream.MsgIDHeader); id != "" {
		t.Errorf("a message has the identifier %q, which nats-server 2.12.0 refuses in a batch", id)
	}
	// As its writer sent it, it is refused for ever.
	if _, err := w.js.Publish(t.Context(), again.Subject, again.Data, jetstream.WithExpectLastSequence(1)); err == nil {
		t.Fatal("a message was taken at a sequence that is taken")
	}
	// Somebody who does not say where it belongs does damage, and that is named.
	if _, err := w.js.Publish(t.Context(), again.Subject, again.Data); err != nil {
		t.Fatal(err)
	}
	var damage *DamageError
	if err := reader.end(); !errors.As(err, &damage) || damage.Sequence != 4 {
		t.Errorf("the reader: err = %v, want damage at message 4", err)
	}
	if err := w.commit(random, 1, 1); !errors.As(err, &damage) || damage.Sequence != 4 {
		t.Errorf("the writer: err = %v, want damage at message 4", err)
	}
	refused := uint64(0)
	for i := range reader.stats.refused {
		refused += reader.stats.refused[i].Get()
	}
	if refused == 0 {
		t.Error("no damage is counted")
	}
}
