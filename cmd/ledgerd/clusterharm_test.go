package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"ledgerd/engine/cluster/exchange"
)

// harmNewest puts other bytes in the place of the first part of the newest snapshot's state.
func harmNewest(r *clusterRig) {
	t := r.T
	t.Helper()
	conn, err := nats.Connect(r.servers.URL(0))
	must(t, err)
	defer conn.Close()
	js, err := jetstream.New(conn)
	must(t, err)
	store, err := js.ObjectStore(t.Context(), "LEDGER_snapshots")
	must(t, err)
	// The server that leads answers this. A list may be an old copy's.
	stream, err := js.Stream(t.Context(), "OBJ_LEDGER_snapshots")
	must(t, err)
	info, err := stream.Info(t.Context(), jetstream.WithSubjectFilter("$O.LEDGER_snapshots.M.>"))
	must(t, err)
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
	must(t, json.Unmarshal(b, &m))
	f := m.Files[len(m.Files)-1] // the state comes behind all that it names
	part := fmt.Sprintf("%s/%06d/%s", f.Name, 0, f.Parts[0])
	harm := make([]byte, min(f.Bytes, 8<<20))
	_, err = store.Put(t.Context(), jetstream.ObjectMeta{Name: part}, bytes.NewReader(harm))
	must(t, err)
}
