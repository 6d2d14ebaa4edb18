package main

import (
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/ledgertest"
	"ledgerd/engine/source/file"
)

// F30, F31, F47: within a cgroup of 256 MiB, many connections of few addresses are sent much and read hardly any of it. Some are served, and the others are
// refused or given up; the node does not die of it.
func TestAbuseUnreadAnswersShareOneBudget(t *testing.T) { plainAndTLS(t, attackUnread) }

func attackUnread(t *testing.T, over []string) {
	const list, upTo10000 = "/accounts/program/" + systemProgram + "?limit=10000", "sim:accounts=19800,slots=5,slot_time=0"
	for name, tt := range map[string]struct {
		addresses, each int
		args            []string
		query           string                   // of a WebSocket; "": it is none
		reads           func(c *attacker) string // to its end, and names that
		within          time.Duration
		ends            []string // in which a connection may end, the best first
	}{
		"conflated updates of most accounts": {
			10, 20, []string{"--retain-slots", "100", "--source", "sim:accounts=18000,tps=5000,slot_time=100ms"},
			"programs=" + tokenProgram + "," + systemProgram + "&extended=true&overflow=conflate",
			func(c *attacker) string { return c.reach("what no frame holds") }, 2 * time.Second, []string{"open", "1013", "4008", "cut"},
		},
		"snapshots of nearly 10,000 accounts": {
			25, 20, []string{"--source", upTo10000}, "mode=none",
			func(c *attacker) string {
				_ = c.ws.WriteText(fmt.Appendf(nil, `{"type":"subscribe","id":1,"programs":[%q],"snapshot":true,"extended":true}`, systemProgram))
				return c.reach("snapshot_end")
			}, patience, []string{"served", "1013"},
		},
		"lists of 10,000 accounts": {
			8, 100, []string{"--source", "sim:accounts=40000,slots=5,slot_time=0"}, "",
			func(c *attacker) string {
				_ = c.ask(list)
				return c.listed()
			}, patience, []string{"200", "503, and when to come again"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			v := attack(t, memoryCgroup(t, 256<<20), tt.addresses*tt.each, slices.Concat(over, tt.args, []string{"--rate-limit-exempt", "127.0.0.1"})...)
			ledgertest.Equal(t, v.metric("go_memlimit_bytes"), 256<<20/100*cgroupPercent, "the limit of the collector, a part of the cgroup's,")
			ledgertest.Equal(t, v.metric("ledgerd_client_memory_limit_bytes"), 256<<20/100*cgroupPercent/clientShare, "what may wait for clients")
			conns, ended, slow := make([]*attacker, tt.addresses*tt.each), make(chan string, tt.addresses*tt.each), make(chan struct{})
			for i := range conns {
				c := v.mustDial(2+i/tt.each, slow)
				if conns[i] = c; tt.query != "" {
					c.slow = nil // not before the handshake
					_, err := c.shake(v.base, tt.query)
					must(t, err)
					c.slow = slow
				}
				go func() { ended <- tt.reads(c) }()
			}
			v.visit("short of memory")
			t.Logf("resident memory: %d MiB", v.usage().RSSBytes>>20)
			for _, c := range conns { // what is left is read as fast as it goes
				_ = c.socket.SetReadBuffer(1 << 20)
				_ = c.SetReadDeadline(time.Now().Add(tt.within))
			}
			close(slow)
			ends := map[string]int{}
			for range conns {
				how := <-ended
				if ends[how]++; !slices.Contains(tt.ends, how) {
					t.Errorf("a connection ended with %s, want %q", how, tt.ends)
				}
			}
			t.Logf("connections ended so: %v", ends)
			if best := tt.ends[0]; ends[best] == 0 && best != "open" { // whoever reads so slowly may be given up, each of them
				t.Error("nobody was served at all")
			}
			for _, c := range conns {
				c.Close()
			}
			v.until("with all connections closed a list is answered", func() bool {
				response, err := v.mustDial(1, nil).get(list)
				return err == nil && response.StatusCode == http.StatusOK
			})
		})
	}
}

// reach reads frames up to one that holds a text, and names what ended that.
func (c *attacker) reach(text string) string {
	frame, err := c.ws.Next()
	for err == nil && !strings.Contains(string(frame.Payload), text) {
		frame, err = c.ws.Next()
	}
	return end(err)
}

// listed reads the answer to a request for a list and names it.
func (c *attacker) listed() string {
	response, err := http.ReadResponse(c.in, nil)
	if err != nil {
		return err.Error()
	}
	if response.StatusCode == http.StatusServiceUnavailable && response.Header.Get("Retry-After") != "" {
		if body, _ := io.ReadAll(response.Body); strings.Contains(string(body), `"details":"overloaded`) {
			return "503, and when to come again"
		}
	}
	return strconv.Itoa(response.StatusCode)
}

// F47: within a cgroup of 256 MiB, what is kept for those who follow everything fits too: each level in each form, of a stream that is faster than
// any network.
func TestAbuseFollowersOfEverythingFitACgroup(t *testing.T) { plainAndTLS(t, followEverything) }

func followEverything(t *testing.T, args []string) {
	v := launchUnder(t, memoryCgroup(t, 256<<20), append(args, "--data-dir", t.TempDir(), "--wal-sync", "off", "--retain-slots", "50", "--snapshot-interval", "0",
		"--source", "sim:accounts=5000,tps=20000,finality=8,slot_time=40ms")...).ready() // what a faster simulator itself holds is more than what is tried here
	for _, level := range levels {
		for _, form := range []string{"", "&extended=true", "&extended=true&tokens=true"} {
			go func() {
				for !v.Failed() { // on a busy machine some are too slow, and come back
					c, err := v.dial(2, nil)
					if err != nil {
						return // the node was stopped
					}
					if _, err = c.shake(v.base, "commitment="+level+form); err == nil {
						c.drain()
					}
				}
			}()
		}
	}
	const each = 100 << 20 // bytes of frames, more than is kept without a limit
	v.untilWithin(2*patience, "all have followed for long", func() bool { return v.metric("ledgerd_ws_bytes_total") > 9*each })
	t.Logf("resident memory: %d MiB", v.usage().RSSBytes>>20)
	v.visit("behind followers of everything")
}

// F35, F47: within a cgroup of 128 MiB, connections that begin a request of 12 KB, or a handshake of as much as TLS takes, and never end it leave the node alive.
func TestAbuseUnfinishedRequestsFitACgroup(t *testing.T) {
	alone(t)
	encrypted := encrypted(t)
	head := "GET /api/status HTTP/1.1\r\nHost: ledgerd\r\nX: " + strings.Repeat("x", 12_000)
	hello := func(recordBytes int) (records string) { // of 64 KB but for the last bytes
		for piece := range slices.Chunk([]byte("\x01\x00\xff\xdc\x03\x03"+strings.Repeat("x", 65_000)), recordBytes) {
			records += string(binary.BigEndian.AppendUint16([]byte("\x16\x03\x01"), uint16(len(piece)))) + string(piece)
		}
		return records
	}
	for name, tt := range map[string]struct {
		args  []string
		conns int
		begin func(c *attacker)
	}{
		"heads":                         {nil, 10_000, func(c *attacker) { _, _ = io.WriteString(c, head) }},
		"heads over TLS":                {encrypted, 2000, func(c *attacker) { _, _ = io.WriteString(c, head) }},
		"handshakes in long records":    {encrypted, 5000, func(c *attacker) { _, _ = io.WriteString(c.socket, hello(16_000)) }},
		"handshakes in shorter records": {encrypted, 5000, func(c *attacker) { _, _ = io.WriteString(c.socket, hello(5000)) }},
	} {
		t.Run(name, func(t *testing.T) {
			v := launchUnder(t, memoryCgroup(t, 128<<20), append(tt.args, "--data-dir", t.TempDir(), "--source", "sim:slot_time=100ms")...).ready()
			var conns []*attacker
			for i := range tt.conns {
				c, err := v.dial(2+i/90, nil)
				if err != nil {
					continue // more than there is room for
				}
				tt.begin(c)
				conns = append(conns, c)
			}
			t.Logf("%d connections, resident memory: %d MiB", len(conns), v.usage().RSSBytes>>20)
			for _, c := range conns {
				_ = c.socket.Close()
			}
			v.visit("after them")
		})
	}
}

// F47: within a cgroup of 256 MiB, a source that never says again that a block is final, and shows blocks as fast as they are parsed, makes ingest
// pause, and reads go on.
func TestUnfinalizedBlocksFitACgroup(t *testing.T) {
	if testing.Short() {
		t.Skip("the race detector takes many times the memory: make test")
	}
	f := newFeeder(t)
	v := launchUnder(t, memoryCgroup(t, 256<<20), "--data-dir", t.TempDir(), "--wal-sync", "off", "--source", "file:"+f.Name())
	var feeding sync.WaitGroup
	feeding.Go(func() {
		var line []byte
		for slot, err := ledger.Slot(100), error(nil); err == nil; slot++ { // until the test has ended
			b := &ledger.Block{Slot: slot, ParentSlot: slot - 1, Blockhash: toolHash(slot), PreviousBlockhash: ledger.Some(toolHash(slot - 1))}
			for i := range 1000 {
				b.Accounts = append(b.Accounts, ledger.AccountWrite{Pubkey: toolKey(fmt.Sprint(slot, "/", i)), Lamports: 1, Owner: ledger.TokenProgram, Known: ledger.FieldOwner})
			}
			line = file.AppendEventLine(line[:0], b)
			if slot == 100 {
				line = file.AppendEventLine(line, &ledger.SlotStatus{Slot: slot, Status: ledger.StatusFinalized})
			}
			_, err = f.Write(line)
		}
	})
	defer feeding.Wait()
	defer f.Close()
	why := v.listened().unhealthy(regexp.MustCompile("unfinalized"))
	v.visit("while too much is unfinalized")
	v.unhealthy(regexp.MustCompile("unfinalized"))
	t.Logf("%s; newest slot %d, resident memory: %d MiB", why, newestSlot(v), v.usage().RSSBytes>>20)
}
