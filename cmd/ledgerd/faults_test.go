package main

import (
	"net/http"
	"strings"
	"syscall"
	"testing"

	"github.com/fasthttp/websocket"
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

// restartShows checks that a restart has all that was shown.
func restartShows(t *testing.T, dir string, shown uint64) {
	t.Helper()
	v := launch(t, "--data-dir", dir, "--source", "none").ready()
	if slot := newestSlot(v); slot < shown {
		t.Errorf("slot %d was shown, and after a restart slot %d", shown, slot)
	}
	v.stop()
}

// F48: a second signal ends a node at once that is stopping, here one that waits for a client which does not answer the close frame.
// A restart has all that was shown.
func TestSecondSignalEndsTheProcessAtOnce(t *testing.T) {
	t.Parallel()
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		ended := false
		for try := 0; try < 10 && !ended; try++ { // on a busy machine the node may have stopped before the second signal comes
			ended = endsAtOnce(t, signal)
		}
		if !ended {
			t.Errorf("a second %v ended no node", signal)
		}
	}
}

// endsAtOnce reports whether the second signal ended a node, rather than that it stopped as after one.
func endsAtOnce(t *testing.T, signal syscall.Signal) bool {
	t.Helper()
	data := t.TempDir()
	v := launch(t, "--data-dir", data, "--source", "sim:accounts=300,slot_time=4ms").ready()
	silent := openSocket(t, v.base, "?mode=none")
	silent.SetCloseHandler(func(int, string) error { return nil })
	v.until("there are blocks", func() bool { return v.metric(`ledgerd_slot{commitment="processed"}`) > 20 })
	shown := newestSlot(v)
	v.Signal(signal)
	if _, _, err := silent.ReadMessage(); !websocket.IsCloseError(err, websocket.CloseGoingAway) {
		t.Errorf("the silent socket ended with %v, want close code 1001", err)
	}
	v.Signal(signal)
	code := v.gone(patience)
	status := v.State().Sys().(syscall.WaitStatus)
	if ended := status.Signaled() && status.Signal() == signal; !ended && code != exitOK {
		t.Errorf("after a second %v it ended with %v:\n%s", signal, v.State(), v.errs)
	}
	restartShows(t, data, shown)
	return status.Signaled()
}
