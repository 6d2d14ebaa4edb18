package main

import (
	"net/http"
	"strings"
	"testing"

	"ledgerd/engine/cluster/natstest"
	"ledgerd/engine/ledger/ledgertest"
)

// Where no server of the log can be reached a node says so, and answers what it holds.
func TestNodeWithoutServersAnswersWhatItHolds(t *testing.T) {
	t.Parallel()
	servers := natstest.Start(t, 1)
	log := strings.Replace(servers.URL(0), "nats://", "nats://who:SECRET@", 1) + "/LEDGER"
	args := []string{"--data-dir", t.TempDir(), "--source", "sim:accounts=100,slot_time=10ms", "--log", log, "--log-replicas", "1"}
	v := launch(t, args...).ready()
	v.until("a block is there", func() bool { return v.get("/blocks/latest").status == http.StatusOK })
	v.stop()
	servers.Kill(0)

	down := launch(t, args...)
	down.listens()
	down.until("it answers what it holds", func() bool { return down.get("/blocks/latest").status == http.StatusOK })
	fresh := launch(t, "--data-dir", t.TempDir(), "--source", "none", "--role", "replica", "--log", log)
	fresh.listens()
	fresh.until("it says what it does", func() bool {
		return strings.Contains(fresh.get("/health").body, "joining the cluster; there is no connection to the shared log")
	})
	answer := fresh.get("/status")
	ledgertest.Equal(t, answer.status, http.StatusOK, "a fresh node: status of %s", answer.body)
	for _, v := range []*victim{down, fresh} {
		a, err := v.ask(v.ops + "/readyz")
		if err != nil || a.status != http.StatusServiceUnavailable || !strings.Contains(a.body, "there is no connection to the shared log") {
			t.Errorf("ready: %d %s, %v", a.status, a.body, err)
		}
		if said := v.out.String() + v.errs.String() + a.body; strings.Contains(said, "SECRET") {
			t.Errorf("it tells the secret:\n%s", said)
		}
		v.stop()
	}
}
