package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"ledgerd/engine/cluster/exchange"
)

// F8: the newest snapshot holds a part of the right size and other bytes: only who fetches it notices. A fresh replica then begins
// with the older one.
func TestFreshReplicaBeginsWithTheOlderSnapshot(t *testing.T) {
	t.Parallel()
	r := newClusterRig(t, "finality=4,accounts=500,tps=500,slot_time=20ms")
	r.add(roleIngest, "--snapshot-interval", "0s")
	maker := r.add(roleReplica, "--snapshot-interval", "300ms")
	r.ready()
	r.until("two snapshots are offered", func() bool { return maker.metric("ledgerd_cluster_snapshot_offers_total") >= 2 })
	r.turnOff(maker)

	conn, err := nats.Connect(r.servers.URL(0))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	store, err := js.ObjectStore(t.Context(), "LEDGER_snapshots")
	if err != nil {
		t.Fatal(err)
	}
	harmNewest(r, js, store)

	fresh := r.add(roleReplica, "--snapshot-interval", "0s")
	r.until("the fresh replica is ready", fresh.isReady)
	if fresh.metric("ledgerd_cluster_snapshot_fetches_total") != 1 || !strings.Contains(fresh.said(), "tries an older one") {
		t.Errorf("it did not begin with the older snapshot:\n%s", fresh.said())
	}
	r.stop()
	r.sameRecords()
}

// harmNewest puts other bytes in the place of the first part of the newest snapshot's state.
func harmNewest(r *clusterRig, js jetstream.JetStream, store jetstream.ObjectStore) {
	t := r.T
	t.Helper()
	// The server that leads answers this. A list may be an old copy's.
	stream, err := js.Stream(t.Context(), "OBJ_LEDGER_snapshots")
	if err != nil {
		t.Fatal(err)
	}
	info, err := stream.Info(t.Context(), jetstream.WithSubjectFilter("$O.LEDGER_snapshots.M.>"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for subject := range info.State.Subjects {
		name, err := base64.URLEncoding.DecodeString(subject[strings.LastIndex(subject, ".")+1:])
		if err == nil && strings.HasPrefix(string(name), "manifest-") {
			names = append(names, string(name))
		}
	}
	if len(names) < 2 {
		t.Fatalf("there are snapshots %v, want two", names)
	}
	var b []byte
	r.until("the manifest can be read", func() bool {
		b, err = store.GetBytes(t.Context(), slices.Max(names))
		return err == nil
	})
	var m exchange.Manifest
	if err := json.Unmarshal(b, &m); err != nil {
		t.Fatal(err)
	}
	f := m.Files[len(m.Files)-1] // the state comes behind all that it names
	part := fmt.Sprintf("%s/%06d/%s", f.Name, 0, f.Parts[0])
	harm := make([]byte, min(f.Bytes, 8<<20))
	if _, err := store.Put(t.Context(), jetstream.ObjectMeta{Name: part}, bytes.NewReader(harm)); err != nil {
		t.Fatal(err)
	}
}
