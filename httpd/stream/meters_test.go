package stream

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"ledgerd/engine/ledger"
)

// says reports whether the metrics hold a line.
func (n *node) says(line string) bool {
	var text strings.Builder
	n.hub.writeMetrics(&text)
	return strings.Contains(text.String(), line+"\n")
}

func (n *node) wantMetric(format string, args ...any) {
	n.Helper()
	if line := fmt.Sprintf(format, args...); !n.says(line) {
		var text strings.Builder
		n.hub.writeMetrics(&text)
		n.Errorf("no %s in\n%s", line, text.String())
	}
}

func TestSubscribersAreCountedByWhatTheyWant(t *testing.T) {
	n := serve(t, nil)
	check := func(everything, keys, nothing int) {
		t.Helper()
		n.wantMetric(`ledgerd_ws_subscribers{wants="everything"} %d`, everything)
		n.wantMetric(`ledgerd_ws_subscribers{wants="keys"} %d`, keys)
		n.wantMetric(`ledgerd_ws_subscribers{wants="nothing"} %d`, nothing)
	}
	check(0, 0, 0)
	n.dial("")
	n.dial("?commitment=finalized&extended=true&programs=" + programA.String())
	c := n.dial("?mode=none")
	check(1, 1, 1)
	c.send(`{"type":"subscribe","pubkeys":%s}`, list(key(1)))
	c.settle()
	check(1, 2, 0)
	c.send(`{"type":"unsubscribe","pubkeys":%s}`, list(key(1)))
	c.settle()
	check(1, 1, 1)
	c.send(`{"type":"subscribe"}`)
	c.settle()
	check(2, 1, 0)
	_ = c.conn.Close()
	eventually(t, "who is gone is not counted", func() bool { return n.says(`ledgerd_ws_subscribers{wants="everything"} 1`) })
	check(1, 1, 0)
}

func TestResumesAreCountedByWhereTheyWereServedFrom(t *testing.T) {
	log := &fakeHistory{oldest: 2}
	n := serve(t, func(c *Config) {
		c.History, c.RecentBytes, c.HeartbeatInterval, c.ResumeTimeout = log, 1, time.Millisecond, time.Nanosecond
	})
	n.script.history = log
	n.script.blocks(5)
	for from, seq := range map[string]uint64{"memory": 5, "log": 2, "refused": 1} {
		c := n.dial(fmt.Sprintf("?mode=none&resume_from=%d", seq))
		c.settle() // the answer may come before it is counted
		n.wantMetric(`ledgerd_ws_resumes_total{from=%q} 1`, from)
	}
	c := n.dial("?mode=none&resume_from=9")
	c.expect(resumed("null", 9), resync("null", 2, 5))
	n.wantMetric(`ledgerd_ws_resumes_total{from="ahead"} 1`)
	n.wantMetric(`ledgerd_ws_resumes_total{from="refused"} 2`)
}

// Every write is measured, and each that brings a publication to a socket says how long that took.
func TestWritesAndDeliveriesAreMeasured(t *testing.T) {
	var mu sync.Mutex
	var writes int
	var deliveries []time.Duration
	inMemory(t, func(c *Config) {
		c.OnWrite = func(d time.Duration) { mu.Lock(); defer mu.Unlock(); writes++ }
		c.OnDelivered = func(d time.Duration) { mu.Lock(); defer mu.Unlock(); deliveries = append(deliveries, d) }
	}, func(n *node) {
		time.Sleep(time.Second) // 0 is no time of a publication
		for i, query := range []string{"", "?pubkeys=" + key(1).String(), "?mode=none"} {
			c := n.dial(query)
			n.script.block(ledger.Slot(i+1), account(1, ledger.Lamports(i+1), programA))
			time.Sleep(time.Duration(i+1) * time.Second) // the client is slow to read
			if query != "?mode=none" {
				c.expect(basicFrame(account(1, ledger.Lamports(i+1), programA), ledger.Slot(i+1)))
			}
			c.quiet()
			c.close(codeOf(1000, ""))
			c.ends()
		}
	})
	if !slices.Equal(deliveries, []time.Duration{time.Second, 2 * time.Second}) || writes < 8 {
		t.Errorf("deliveries took %v and there were %d writes, want 1 s and 2 s, and one for each frame", deliveries, writes)
	}
}
