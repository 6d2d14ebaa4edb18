package main

import (
	"encoding/json"
	"fmt"
	"io"
	"sync"
	"testing"
	"time"
)

// F40: twenty sockets of one address go on from the oldest seq of the log. Another client that does so after
// them gets its turns in between: the address has a share, not each of its sockets.
func TestAbuseResumesOfOneAddressLeaveTurnsToOthers(t *testing.T) {
	alone(t)
	const sockets, wantedBytes, maxShare = 20, 20 << 20, 8
	a := attack(t, sockets, "--snapshot-interval", "0", "--source", "sim:accounts=20000,tps=5000,slot_time=0,slots=170")
	a.errs.await(t, "end of input")
	told, err := a.socket(1, nil, "resume_from=0").ws.Next()
	var first struct {
		Type   string
		Oldest uint64 `json:"oldest_seq"`
	}
	if jsonErr := json.Unmarshal(told.Payload, &first); err != nil || jsonErr != nil || first.Type != "resync_required" {
		t.Fatalf("resume_from=0: %s, %v, want resync_required with the oldest seq", told.Payload, err)
	}
	oldest := fmt.Sprintf("resume_from=%d&extended=true", first.Oldest)
	var others []*attacker
	var reading sync.WaitGroup
	t.Cleanup(reading.Wait)
	for range sockets {
		c := a.socket(2, nil, oldest)
		others = append(others, c)
		reading.Go(func() { _, _ = io.Copy(io.Discard, c) })
	}
	total := func() (bytes int64) {
		for _, c := range others {
			bytes += c.bytes.Load()
		}
		return bytes
	}
	c := a.socket(1, nil, oldest)
	_ = c.SetReadDeadline(time.Now().Add(60 * time.Second))
	began, before := time.Now(), total()
	for frames := 0; c.bytes.Load() < wantedBytes && total()-before <= maxShare*wantedBytes; frames++ {
		if _, err := c.ws.Next(); err != nil {
			t.Fatal(err)
		}
		if frames == 1 { // after resumed
			t.Logf("first update after %v and %d MiB of the others", time.Since(began).Round(time.Millisecond), (total()-before)>>20)
		}
	}
	got, theirs := c.bytes.Load()>>10, (total()-before)>>10
	t.Logf("%d KiB after %v, the others %d KiB", got, time.Since(began).Round(time.Millisecond), theirs)
	if theirs > maxShare*got {
		t.Errorf("the other address got %d KiB while one client got %d KiB, want at most %d times as much", theirs, got, maxShare)
	}
}
