package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fasthttp/websocket"
)

// TestClientComesBackToANodeThatWasKilled follows a node with one client that goes away now and then,
// and kills the node while nobody listens. Each time the client comes back with the last number it
// saw, and is told every update since, once and in order, as the ledger has it. Snapshots are taken
// at clean stops alone, so that the log behind them is kept however slow the machine is.
func TestClientComesBackToANodeThatWasKilled(t *testing.T) {
	t.Parallel()
	cycles := repetitions(t, "LEDGERD_CRASH_CYCLES", 6)
	random, seed := dice(t)
	source := fmt.Sprintf("sim:seed=%d,accounts=300,tps=1000,slot_time=4ms,finality=8,fork_rate=0.2,skip_rate=0.1", seed)
	straight := start(t, "--data-dir", t.TempDir(), "--source", source)
	truth := remember(t, straight.base, keptBlocks)
	dir := keptDir(t)
	r := &returning{T: t, truth: truth}
	for cycle := range cycles {
		v := launch(t, "--data-dir", dir, "--source", source, "--snapshot-interval", "0s", "--log-segment-bytes", "128KiB", "--retain-slots", fmt.Sprint(keptBlocks)).ready()
		r.follow(v, between(random, 50*time.Millisecond, 200*time.Millisecond))
		time.Sleep(between(random, 0, 150*time.Millisecond)) // it misses this
		if cycle%2 == 0 {
			r.follow(v, between(random, 20*time.Millisecond, 100*time.Millisecond))
			time.Sleep(between(random, 0, 50*time.Millisecond))
		}
		if cycle%3 == 2 {
			v.stop()
		} else {
			v.kill()
		}
		r.check()
	}
	if r.missed == 0 {
		t.Error("the client never missed anything")
	}
	t.Logf("%d updates, %d of them told on coming back", r.seq, r.missed)
}

// returning is a client that remembers the last number it saw.
type returning struct {
	*testing.T
	truth  *history
	seq    uint64 // the last number it saw
	missed uint64 // updates it was told on coming back

	heard   []spell // what is not checked yet
	checked uint64  // the number of the last update that was checked
}

// spell is what a client was told while a socket of it was open.
type spell struct {
	texts  [][]byte
	joined int // the place of the first that had to follow on what was told before
}

// follow listens for a while. What was told is checked when the node is gone: a client that
// does not read is a slow one, and the longer a node lives the more there is to check.
func (r *returning) follow(v *victim, d time.Duration) {
	r.Helper()
	url := "ws" + strings.TrimPrefix(v.base, "http") + "/ws/accounts?extended=true"
	if r.seq > 0 {
		url += fmt.Sprintf("&resume_from=%d", r.seq)
	}
	conn, response, err := websocket.DefaultDialer.Dial(url, nil)
	if err != nil {
		r.Fatalf("cannot open a socket: %v", err)
	}
	response.Body.Close()
	defer conn.Close()
	var told spell
	from := r.seq
	there := pong(r, conn, func(text []byte, _ spoken) { told.texts = append(told.texts, text) }).Seq
	r.missed += there - from
	if from == 0 {
		told.joined = len(told.texts)
	}
	for until := time.Now().Add(d); time.Now().Before(until); {
		conn.SetReadDeadline(time.Now().Add(patience))
		_, text, err := conn.ReadMessage()
		if err != nil {
			r.Fatal(err)
		}
		told.texts = append(told.texts, text)
	}
	for _, text := range slices.Backward(told.texts) {
		if f := r.parse(text); f.Type == "account_update" {
			r.seq = f.Seq
			break
		}
	}
	r.heard = append(r.heard, told)
}

func (r *returning) parse(text []byte) (f spoken) {
	r.Helper()
	if err := json.Unmarshal(text, &f); err != nil {
		r.Fatalf("frame %q: %v", text, err)
	}
	return f
}

// check goes through what was told since it was called last.
func (r *returning) check() {
	r.Helper()
	for _, told := range r.heard {
		for i, text := range told.texts {
			r.told(text, i >= told.joined)
		}
	}
	r.heard = nil
}

// told checks that nothing is left out and nothing is told twice.
func (r *returning) told(text []byte, joined bool) {
	r.Helper()
	f := r.parse(text)
	switch f.Type {
	case "resync_required":
		r.Fatalf("after %d: %s", r.checked, text)
	case "account_update":
		if joined && f.Seq != r.checked+1 && r.checked > 0 {
			r.Fatalf("update %d comes after %d", f.Seq, r.checked)
		}
		r.checked = f.Seq
		r.truth.reaches(place{f.Slot, f.Seq})
		if wrong := r.truth.wrong(string(text)); wrong != "" {
			r.Fatalf("%s: %s", text, wrong)
		}
	}
}
