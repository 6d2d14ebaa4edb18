package main

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"ledgerd/engine/ledger/ledgertest"
)

// longestStop is what a clean stop may take on a machine that has time for it.
const longestStop = 10 * time.Second

// F48: a signal may come at any moment of the start. These nodes are in the process of the tests, which fails where a goroutine of one is left.
func TestStopDuringStart(t *testing.T) {
	t.Parallel()
	for i := range 20 {
		ctx, stop := context.WithCancel(t.Context())
		out, errs := newTranscript(), newTranscript()
		var serving sync.WaitGroup
		serving.Go(func() {
			defer out.End()
			args := []string{"serve", "--listen", "127.0.0.1:0", "--ops-listen", "127.0.0.1:0", "--data-dir", t.TempDir(), "--source", "sim:accounts=1000,slot_time=0"}
			ledgertest.Equal(t, run(ctx, args, &streams{out, errs}), exitOK, "the exit code after a signal, of what said\n%s", errs)
		})
		if i%2 == 1 {
			out.await(t, "REST")
		}
		stop()
		serving.Wait()
	}
}

// F48: a signal may come while the log is read again, which is as it was afterwards.
func TestStopDuringReplay(t *testing.T) {
	t.Parallel()
	random, _ := seededRand(t)
	data := t.TempDir()
	v := launch(t, "--data-dir", data, "--wal-sync", "off", "--snapshot-interval", "0", "--source", "sim:accounts=2000,tps=20000,slot_time=0,slots=8").ready()
	v.ending()
	shown := newestSlot(v)
	v.Kill()
	v = launch(t, "--data-dir", data, "--source", "none").listened()
	begun := time.Now()
	v.ready().Kill()
	whole := time.Since(begun)
	stopped := 0
	for tries := repetitions(t, "LEDGERD_CRASH_CYCLES", 3); tries > 0 || stopped == 0 && tries > -20; tries-- { // some come after it
		v := launch(t, "--data-dir", data, "--source", "none").listened()
		time.Sleep(time.Duration(random.Int64N(int64(whole / 2))))
		v.Signal(syscall.SIGTERM)
		ledgertest.Equal(t, v.gone(patience), exitOK, "the exit code after a signal, of what said\n%s", v.errs)
		if !strings.Contains(v.errs.String(), "msg=recovered") {
			stopped++
		}
	}
	if stopped == 0 {
		t.Errorf("no replay of %v was stopped", whole)
	}
	v = launch(t, "--data-dir", data, "--source", "none").ready()
	if slot := newestSlot(v); slot < shown {
		t.Errorf("slot %d was shown, and after a restart slot %d", shown, slot)
	}
}

// F31, F48: a stop takes ten seconds at most whatever peers leave undone, plain or over TLS: they follow and do not read, ask for more than they read and then
// shake hands for a socket, have not finished a request, say nothing. Where it took longer another node is stopped, at most twice: the machine may be busy.
func TestStopWhateverPeersDo(t *testing.T) {
	const handshake = "GET /api/ws/accounts?extended=true HTTP/1.1\r\nHost: x\r\n" + upgradeLines + "\r\n"
	list := "GET /api/accounts/program/" + systemProgram + "?limit=10000 HTTP/1.1\r\nHost: x\r\n\r\n"
	for name, args := range map[string][]string{"plain": nil, "TLS": encrypted(t)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			took := longestStop
			for try := 0; try < 3 && took >= longestStop; try++ {
				v := launch(t, append(args, "--data-dir", t.TempDir(), "--source", "sim:accounts=19800,tps=3000,slot_time=20ms")...).ready()
				slow := make(chan struct{})
				for _, sent := range []string{handshake, strings.Repeat(list, 8) + handshake, list + handshake, list, "GET /api/status HTTP/1.1\r\nHost: x\r\nX: ", ""} {
					for range 5 {
						_, err := io.WriteString(v.mustDial(1, slow), sent)
						must(t, err)
					}
				}
				v.until("the sockets are open, but for those in front of which somebody waits", func() bool { return v.metric("ledgerd_ws_connections") >= 5 })
				signaled := time.Now()
				v.stop()
				took = time.Since(signaled)
			}
			if took >= longestStop {
				t.Errorf("the last of three stops took %v, want less than %v", took, longestStop)
			}
		})
	}
}

// newFeeder makes a pipe. It never ends while the test runs, whether somebody reads or not.
func newFeeder(t *testing.T) *os.File {
	t.Helper()
	path := filepath.Join(t.TempDir(), "events.ndjson")
	must(t, syscall.Mkfifo(path, 0o600))
	pipe, err := os.OpenFile(path, os.O_RDWR, 0)
	must(t, err)
	t.Cleanup(func() { pipe.Close() })
	return pipe
}
