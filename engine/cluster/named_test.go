package cluster

import (
	"errors"
	"math/rand/v2"
	"slices"
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
	id, stream := w.knownID(), w.Log().stream
	config := Config{Stream: "named", NodeID: "n", LedgerID: id}

	more := append(w.has(), commitOf(random, pointAfter(w.has()), 3, 1)...)
	named(t, s, config, more, ErrShortened)
	other := commitOf(random, ledger.LogPoint{}, 5, 1)
	named(t, s, config, other, ErrOtherLedger)
	config.LedgerID = "another"
	named(t, s, config, w.has(), ErrRecreated)
	config.LedgerID = id

	noErr(t, stream.Purge(t.Context(), jetstream.WithPurgeSequence(4))) // claim and two commits are gone
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
	noErr(t, stream.Purge(t.Context()))
	proxy.Heal()
	if err := late.end(); !errors.Is(err, ErrPurged) {
		t.Errorf("who was cut off while the stream was purged: err = %v, want %v", err, ErrPurged)
	}
	named(t, s, config, w.has()[:12], ErrPurged)
	named(t, s, config, w.has(), ErrPurged)
	w.mustCommit(random, 1, 1) // who followed all the time goes on
	live.waitFor(14)

	noErr(t, w.js.DeleteStream(t.Context(), "named"))
	named(t, s, config, w.has(), ErrRecreated)
	fresh := follow(t, open(t, s.URLs(), Config{Stream: "named", NodeID: "fresh", MayWrite: true}), nil)
	if err := live.end(); !errors.Is(err, ErrRecreated) {
		t.Errorf("who followed when it was deleted: err = %v, want %v", err, ErrRecreated)
	}
	_, _, err := fresh.Facts(t.Context())
	noErr(t, err)
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
	again, err := w.Log().stream.GetMsg(t.Context(), 2)
	noErr(t, err)
	if id := again.Header.Get(jetstream.MsgIDHeader); id != "" {
		t.Errorf("a message has the identifier %q, which nats-server 2.12.0 refuses in a batch", id)
	}
	// Somebody who does not say where it belongs does damage, and that is named.
	_, err = w.js.Publish(t.Context(), again.Subject, again.Data)
	noErr(t, err)
	var damage *DamageError
	if err := reader.end(); !errors.As(err, &damage) || damage.Sequence != 4 || reader.stats.refused[damage.Kind].Get() == 0 {
		t.Errorf("the reader: err = %v, want damage at message 4, and that it is counted", err)
	}
	if err := w.commit(random, 1, 1); !errors.As(err, &damage) || damage.Sequence != 4 {
		t.Errorf("the writer: err = %v, want damage at message 4", err)
	}
}

// lastChanged returns records of which the last one says something else and leads to the same state.
func lastChanged(records []*ledger.Record, change func(*ledger.Record)) []*ledger.Record {
	records = slices.Clone(records)
	last := *records[len(records)-1]
	change(&last)
	records[len(records)-1] = &last
	return records
}

// testOtherRecordIsNamed joins with a last record that is another one of the same version and the same state: at the end of a
// commit, in its middle, and at the end of the stream.
func testOtherRecordIsNamed(t *testing.T, s *natstest.Servers) {
	random := rand.New(rand.NewPCG(17, 0))
	w := follow(t, open(t, s.URLs(), Config{Stream: "others", NodeID: "w", MayWrite: true}), nil)
	w.writes()
	for range 3 {
		w.mustCommit(random, 2, 0)
	}
	for _, held := range []int{2, 3, 4, 6} {
		other := lastChanged(w.has()[:held], func(r *ledger.Record) { r.Hash[0]++ })
		named(t, s, Config{Stream: "others", NodeID: "n"}, other, ErrOtherLedger)
	}
	// What its own commit is not in the stream for is told by the state alone.
	noErr(t, w.PurgeBelow(t.Context(), 3))
	follow(t, open(t, s.URLs(), Config{Stream: "others", NodeID: "n"}), w.has()[:2]).waitFor(6)
	other := lastChanged(w.has()[:2], func(r *ledger.Record) { r.StateHash[0]++ })
	named(t, s, Config{Stream: "others", NodeID: "n"}, other, ErrOtherLedger)
	named(t, s, Config{Stream: "others", NodeID: "n"}, w.has()[:1], ErrPurged)
	for v := range ledger.Version(7) {
		switch r, err := w.RecordAt(t.Context(), v+1); {
		case v < 2 && !errors.Is(err, ErrPurged), v == 6 && !errors.Is(err, ErrShortened):
			t.Errorf("record %d: %v", v+1, err)
		case v >= 2 && v < 6 && (err != nil || r.Digest() != w.has()[v].Digest()):
			t.Errorf("record %d: %v", v+1, err)
		}
	}
}
