package cluster

import (
	"errors"
	"slices"

	"github.com/nats-io/nats.go/jetstream"

	"ledgerd/engine/cluster/natstest"
	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/ledgertest"
)

// F53: a stream is purged, lacks what a node holds, is deleted and made anew.
func testChangedStreamIsNamed(r *rig) {
	w, live := r.writer("w"), r.reader("live")
	for range 6 {
		w.mustCommit(2, 3)
	}
	live.waitFor(12)
	stream := w.Log().stream
	config := Config{LedgerID: w.knownID()}

	more := append(w.has(), commitOf(r.random, pointAfter(w.has()), 3, 1)...)
	r.mustRefuse(config, more, ErrShortened)
	other := commitOf(r.random, ledger.LogPoint{}, 5, 1)
	r.mustRefuse(config, other, ErrOtherLedger)
	r.mustRefuse(Config{LedgerID: "another"}, w.has(), ErrRecreated)

	must(r, stream.Purge(r.Context(), jetstream.WithPurgeSequence(4))) // claim and two commits are gone
	for held := range 4 {
		r.mustRefuse(config, w.has()[:held], ErrPurged)
	}
	for _, held := range []int{4, 5, 6, 12} {
		n := r.follow(config, w.has()[:held])
		n.waitFor(12)
		n.Close()
	}
	// One that cannot reach the servers while messages that it needs are purged learns of it, though none follows.
	proxy := natstest.NewProxy(r, r.servers.Addr(0))
	late := r.follow(Config{Servers: []string{"nats://" + proxy.Addr()}}, w.has())
	late.waitFor(12)
	eventually(r, "it holds the whole log", func() bool { return late.Log().Behind() < lookInterval })
	proxy.Cut()
	w.mustCommit(1, 1)
	live.waitFor(13)
	must(r, stream.Purge(r.Context()))
	proxy.Heal()
	ledgertest.ErrorIs(r, late.end(), ErrPurged, "who was cut off while the stream was purged")
	r.mustRefuse(config, w.has()[:12], ErrPurged)
	r.mustRefuse(config, w.has(), ErrPurged)
	w.mustCommit(1, 1) // who followed all the time goes on
	live.waitFor(14)

	must(r, w.js.DeleteStream(r.Context(), r.stream))
	r.mustRefuse(config, w.has(), ErrRecreated)
	fresh := r.follow(Config{NodeID: "fresh", MayWrite: true}, nil)
	ledgertest.ErrorIs(r, live.end(), ErrRecreated, "who followed when it was deleted")
	_, _, err := fresh.Facts(r.Context())
	must(r, err)
	r.mustRefuse(config, w.has(), ErrRecreated)
	ledgertest.ErrorIs(r, w.commit(1, 1), ErrRecreated, "the writer")
}

// F53: a message that is sent again is no part of the log.
func testRepeatedMessageIsRefused(r *rig) {
	w, reader := r.writer("w"), r.reader("r")
	w.mustCommit(1, 3)
	w.mustCommit(1, 3)
	again, err := w.Log().stream.GetMsg(r.Context(), 2)
	must(r, err)
	ledgertest.Equal(r, again.Header.Get(jetstream.MsgIDHeader), "", "the identifier of a message, which nats-server 2.12.0 refuses in a batch,")
	// Somebody who does not say where it belongs does damage, and that is named.
	_, err = w.js.Publish(r.Context(), again.Subject, again.Data)
	must(r, err)
	var damage *DamageError
	if err := reader.end(); !errors.As(err, &damage) || damage.Sequence != 4 || reader.stats.refused.Get() == 0 {
		r.Errorf("the reader: err = %v, want damage at message 4, and that it is counted", err)
	}
	if err := w.commit(1, 1); !errors.As(err, &damage) || damage.Sequence != 4 {
		r.Errorf("the writer: err = %v, want damage at message 4", err)
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

// F54: a node joins with a last record that is another one of the same version and the same state: at the end of a
// commit, in its middle, and at the end of the stream.
func testOtherRecordIsNamed(r *rig) {
	w := r.writer("w")
	for range 3 {
		w.mustCommit(2, 0)
	}
	for _, held := range []int{2, 3, 4, 6} {
		other := lastChanged(w.has()[:held], func(r *ledger.Record) { r.Hash[0]++ })
		r.mustRefuse(Config{}, other, ErrOtherLedger)
	}
	// What its own commit is not in the stream for is told by the state alone.
	must(r, w.PurgeBelow(r.Context(), 3))
	r.follow(Config{}, w.has()[:2]).waitFor(6)
	other := lastChanged(w.has()[:2], func(r *ledger.Record) { r.StateHash[0]++ })
	r.mustRefuse(Config{}, other, ErrOtherLedger)
	r.mustRefuse(Config{}, w.has()[:1], ErrPurged)
	for v := range ledger.Version(7) {
		switch record, err := w.RecordAt(r.Context(), v+1); {
		case v < 2 && !errors.Is(err, ErrPurged), v == 6 && !errors.Is(err, ErrShortened):
			r.Errorf("record %d: %v", v+1, err)
		case v >= 2 && v < 6 && (err != nil || record.Digest() != w.has()[v].Digest()):
			r.Errorf("record %d: %v", v+1, err)
		}
	}
}
