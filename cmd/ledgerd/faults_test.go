package main

import (
	"net/http"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// G1, F34: a process with few file descriptors refuses connections and goes on to write its log and snapshots. When it has none
// left it accepts again as soon as there are some.
func TestFewFileDescriptorsEndNothing(t *testing.T) {
	t.Parallel()
	few := []string{"/bin/sh", "-c", `ulimit -n 256; exec "$@"`, "sh"}
	v := launchUnder(t, few, "--data-dir", t.TempDir(), "--source", "sim:accounts=300,tps=200,slot_time=20ms,finality=8",
		"--log-segment-bytes", "128KiB", "--snapshot-interval", "300ms").ready()
	var crowd []*attacker
	v.until("connections are turned away", func() bool { // on a busy machine the first are closed for their silence before the last come
		for _, c := range crowd {
			_ = c.Close()
		}
		crowd = nil
		for i := range 300 {
			crowd = append(crowd, v.mustDial(2+i/75, nil))
		}
		// A newcomer takes the place of a silent one, or is refused where all of the sample are so new that nobody waits for their requests yet.
		return v.metric(`ledgerd_http_connections_refused_total{cap="total"}`)+v.metric("ledgerd_http_connections_evicted_total") > 0
	})
	v.goesOn()

	v.limitFiles(8) // fewer than it has: none can be opened
	v.until("a connection cannot be accepted", func() bool {
		c := v.mustDial(100, nil)
		must(t, c.ask("/status"))
		return v.metric("ledgerd_http_accept_shortages_total") > 0
	})
	v.limitFiles(256)
	v.goesOn()
	late := v.mustDial(101, nil)
	v.until("a newcomer is answered", func() bool {
		response, err := late.get("/status")
		if err != nil { // it came while the node was full
			late = v.mustDial(101, nil)
		}
		return err == nil && response.StatusCode == http.StatusOK
	})
}

// goesOn waits for another snapshot, and for blocks after it.
func (v *victim) goesOn() {
	v.Helper()
	snapshots := func() int { return strings.Count(v.errs.String(), "msg=snapshot") }
	before := snapshots()
	v.until("another snapshot is written", func() bool { return snapshots() > before })
	slot := v.metric(`ledgerd_slot{commitment="processed"}`)
	v.until("the ledger goes on", func() bool { return v.metric(`ledgerd_slot{commitment="processed"}`) > slot+50 })
}

// limitFiles sets how many file descriptors a process may have.
func (v *victim) limitFiles(n uint64) {
	v.Helper()
	if err := unix.Prlimit(v.Pid(), unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: n, Max: 256}, nil); err != nil {
		v.Fatalf("cannot limit the files of process %d: %v", v.Pid(), err)
	}
}
