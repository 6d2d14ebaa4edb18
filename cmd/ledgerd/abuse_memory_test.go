package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// F30: two hundred conflating sockets follow most accounts and read 1 KB a second.
func TestAbuseSlowReadersShareOneBudget(t *testing.T) {
	alone(t)
	addresses, each := 10, 20
	const most = "programs=" + tokenProgram + "," + systemProgram + "&extended=true"
	a := attack(t, addresses*each, "--retain-slots", "100", "--source", "sim:accounts=18000,tps=5000,slot_time=100ms")
	w := a.crowd()
	a.checkMemory(8*time.Second, func() {
		for i := range addresses * each {
			w.join(2+i/each, most+"&overflow=conflate", "")
		}
	})
	w.finish(2*time.Second, "open", "1013", "4008", "cut")
}

// F30: five hundred sockets ask for a snapshot of nearly 10,000 accounts each and hardly read it.
func TestAbuseUnreadSnapshotsShareOneBudget(t *testing.T) {
	alone(t)
	addresses, each := 25, 20
	a := attack(t, addresses*each, "--source", "sim:accounts=19800,slots=5,slot_time=0")
	w := a.crowd()
	a.checkMemory(4*time.Second, func() {
		for i := range addresses * each {
			c := w.join(2+i/each, "mode=none", "snapshot_end")
			must(t, c.ws.WriteText(fmt.Appendf(nil, `{"type":"subscribe","id":1,"programs":[%q],"snapshot":true,"extended":true}`, systemProgram)))
		}
	})
	if ends := w.finish(attackTimeout, "served", "1013"); ends["served"] == 0 {
		t.Error("no snapshot was served at all")
	}
}

// F31: eight addresses ask for a list of 10,000 accounts on each of 100 connections and read nothing.
func TestAbuseUnreadListsShareOneBudget(t *testing.T) {
	alone(t)
	addresses, each := 8, 100
	const list = "/accounts/program/" + systemProgram + "?limit=10000"
	a := attack(t, addresses*each, "--source", "sim:accounts=40000,slots=5,slot_time=0")
	var conns []*attacker
	readFast := make(chan struct{})
	close(readFast)
	a.checkMemory(4*time.Second, func() {
		for i := range addresses * each {
			c := a.mustDial(2+i/each, readFast)
			must(t, c.ask(list, ""))
			conns = append(conns, c)
		}
	})
	refused, wrong := 0, map[string]int{}
	for _, c := range conns {
		_ = c.SetReadDeadline(time.Now().Add(attackTimeout))
		response, err := http.ReadResponse(c.in, nil)
		switch {
		case err != nil:
			wrong[err.Error()]++
		case response.StatusCode == http.StatusServiceUnavailable:
			refused++
			body, _ := io.ReadAll(response.Body)
			if response.Header.Get("Retry-After") == "" || !strings.Contains(string(body), `"details":"overloaded`) {
				wrong[fmt.Sprintf("Retry-After %q, %s", response.Header.Get("Retry-After"), body)]++
			}
		case response.StatusCode != http.StatusOK:
			wrong[response.Status]++
		}
		c.Close()
	}
	t.Logf("%d of %d lists were refused", refused, len(conns))
	for answer, n := range wrong {
		t.Errorf("%d lists were answered with %s, want 200, or 503 with Retry-After and details: overloaded", n, answer)
	}
	for deadline, status := time.Now().Add(attackTimeout), 0; status != http.StatusOK; status, _ = get(t, a.base+list) {
		if time.Now().After(deadline) {
			t.Fatalf("with all connections closed a list is still answered with %d", status)
		}
		time.Sleep(time.Second / 4)
	}
}

// F47: within a cgroup of 256 MiB, what is kept for those who follow everything fits too: each level in each form, of a stream that is faster than
// any network.
func TestAbuseFollowersOfEverythingFitACgroup(t *testing.T) {
	alone(t)
	within, _ := memoryCgroup(t, 256<<20)
	v := launchUnder(t, within, "--data-dir", t.TempDir(), "--wal-sync", "off", "--retain-slots", "50", "--snapshot-interval", "0",
		"--source", "sim:accounts=5000,tps=60000,finality=8,slot_time=40ms").ready()
	for _, level := range levels {
		for _, form := range []string{"", "&extended=true", "&extended=true&tokens=true"} {
			go v.socket(2, nil, "commitment="+level+form).drain()
		}
	}
	const each = 100 << 20 // bytes of frames, more than is kept without a limit
	v.untilWithin(2*patience, "all have followed for long", func() bool { return v.metric("ledgerd_ws_bytes_total") > 9*each })
	t.Logf("resident memory: %d MiB", v.usage().RSSBytes>>20)
	v.visit("behind followers of everything")
}

// F35, F47: within a cgroup of 128 MiB, ten thousand connections that begin a request of 12 KB and never end it leave the node alive.
func TestAbuseUnfinishedRequestsFitACgroup(t *testing.T) {
	alone(t)
	within, _ := memoryCgroup(t, 128<<20)
	v := launchUnder(t, within, "--data-dir", t.TempDir(), "--source", "sim:slot_time=100ms").ready()
	start := "GET /api/status HTTP/1.1\r\nHost: ledgerd\r\nX: " + strings.Repeat("x", 12_000)
	var conns []net.Conn
	for i := range 10_000 {
		c, err := v.dial(2+i/90, nil)
		if err != nil {
			continue // more than there is room for
		}
		_, _ = io.WriteString(c.Conn, start)
		conns = append(conns, c.Conn)
	}
	t.Logf("%d connections, resident memory: %d MiB", len(conns), v.usage().RSSBytes>>20)
	for _, c := range conns {
		_ = c.Close()
	}
	v.visit("after them")
}
