package cluster

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/nats-io/nats.go"

	"ledgerd/engine/cluster/natstest"
)

// TestOldServersAreRefused looks at what servers say of themselves.
func TestOldServersAreRefused(t *testing.T) {
	for version, want := range map[string]error{
		"2.12.0": nil, "2.12.0-RC.1": nil, "2.15.2": nil, "3.0.0": nil, "10.1": nil,
		"2.11.9": ErrOldServer, "1.12.0": ErrOldServer, "2": ErrOldServer, "dev": ErrOldServer, "": ErrOldServer,
	} {
		err := checkVersion("a", version)
		if !errors.Is(err, want) || err != nil && (!permanent(err) || !strings.Contains(err.Error(), version)) {
			t.Errorf("version %q: err = %v, want %v", version, err, want)
		}
	}
}

// TestSyncIsProven asks servers that answer as they do where their operator lets a node's user ask.
func TestSyncIsProven(t *testing.T) {
	t.Parallel()
	s := natstest.Start(t, 1)
	c := open(t, s.URLs(), Config{Stream: "sync", MayWrite: true, Replicas: 1})
	_, info, err := c.bind(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	server, err := nats.Connect(s.URL(0))
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	var answers atomic.Pointer[[]string]
	for i, tt := range []struct {
		answers []string
		want    string // "": it is proven
	}{
		{nil, "do not tell"}, // before anybody answers
		{[]string{`{"server":{"name":"s1"},"data":{"config":{"sync_always":true}}}`}, "do not tell"},
		{[]string{`{"server":{"name":"s1"},"data":{}}`, `{"server":{"name":"s0"},"data":{"config":{"sync_always":true}}}`}, ""},
		{[]string{`{"server":{"name":"s0"},"data":{"config":{}}}`}, "server s0 does not"},
		{[]string{"{"}, "cannot read"},
	} {
		answers.Store(&tt.answers)
		if i == 1 {
			_, err = server.Subscribe(syncQuestion, func(m *nats.Msg) {
				for _, answer := range *answers.Load() {
					_ = m.Respond([]byte(answer)) // who asks waits in vain where this fails
				}
			})
			if err := errors.Join(err, server.Flush()); err != nil {
				t.Fatal(err)
			}
		}
		if err := c.proveSync(info); (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%q: err = %v, want %q", tt.answers, err, tt.want)
		}
	}
}

