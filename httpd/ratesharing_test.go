package httpd

import (
	"net/netip"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// cluster is limiters that tell each other.
type cluster struct {
	limiters []*limiter
	sharings []*sharing
}

func newCluster(nodes, perMinute, perHour int, start time.Time) *cluster {
	c := &cluster{}
	for range nodes {
		l := newLimiter(perMinute, perHour, 64, start)
		c.limiters, c.sharings = append(c.limiters, l), append(c.sharings, newSharing(l))
	}
	return c
}

// tell lets every node tell all the others, and returns how many requests were told of.
func (c *cluster) tell(now time.Time) (told int) {
	for from, s := range c.sharings {
		s.granted(now, func(client netip.Addr, requests uint32) {
			told += int(requests)
			for to, other := range c.sharings {
				if to != from {
					other.grantedElsewhere(client, requests, now)
				}
			}
		})
	}
	return told
}

// Whatever clients ask of which node, what is granted is told once, and once it is told every
// node knows it: nobody is granted more in all than the limit and what was granted unheard.
func TestLimitersThatShareCountTogether(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const perMinute, perHour = 20, 1000
		start := time.Now()
		nodes := rapid.IntRange(2, 4).Draw(t, "nodes")
		c := newCluster(nodes, perMinute, perHour, start)
		granted, told := map[netip.Addr]int{}, 0
		unheard := map[netip.Addr]int{}
		at := start
		for range rapid.IntRange(1, 300).Draw(t, "steps") {
			at = at.Add(time.Millisecond) // all of it within one minute
			if rapid.IntRange(0, 9).Draw(t, "what") == 0 {
				told += c.tell(at)
				clear(unheard)
				continue
			}
			client := netip.AddrFrom4([4]byte{10, 0, 0, rapid.Byte().Draw(t, "client") % 3})
			a := c.limiters[rapid.IntRange(0, nodes-1).Draw(t, "node")].take(client, at)
			known := granted[client] - unheard[client]
			if a.allowed && known >= perMinute {
				t.Fatalf("%v: granted after %d of %d, which every node knows", client, known, perMinute)
			}
			if !a.allowed && granted[client] < perMinute {
				t.Fatalf("%v: refused after %d of %d", client, granted[client], perMinute)
			}
			if a.allowed {
				granted[client]++
				unheard[client]++
			}
		}
		told += c.tell(at)
		all := 0
		for _, n := range granted {
			all += n
		}
		if again := c.tell(at); told != all || again != 0 {
			t.Fatalf("%d granted, %d told of, and %d again", all, told, again)
		}
	})
}

// A window that another node began ends here a minute after it was heard of, and the hour's goes on.
func TestWhatWasSpentElsewhereExpires(t *testing.T) {
	start := time.Now()
	c := newCluster(2, 10, 15, start)
	client := netip.MustParseAddr("2001:db8::")
	for range 10 {
		c.limiters[0].take(client, start)
	}
	c.tell(start)
	if a := c.limiters[1].take(client, start.Add(time.Second)); a.allowed || a.window != minuteWindow {
		t.Errorf("right after: %+v", a)
	}
	for i := range 5 {
		if a := c.limiters[1].take(client, start.Add(time.Minute)); !a.allowed {
			t.Errorf("request %d a minute later: %+v", i+1, a)
		}
	}
	if a := c.limiters[1].take(client, start.Add(time.Minute)); a.allowed || a.window != hourWindow {
		t.Errorf("after 15 in the hour: %+v", a)
	}
	if a := c.limiters[1].take(client, start.Add(time.Hour)); !a.allowed {
		t.Errorf("an hour later: %+v", a)
	}
}

// Clients that left the table are forgotten, whatever their number.
func TestSharingForgetsWhoLeft(t *testing.T) {
	start := time.Now()
	c := newCluster(2, 100, 100, start)
	for i := range 100_000 {
		c.limiters[0].take(netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)}), start)
		if i%1000 == 0 {
			c.tell(start)
		}
	}
	c.tell(start)
	for i, s := range c.sharings {
		if most := 64 * ways; len(s.seen) > most+most/2 {
			t.Errorf("node %d remembers %d clients, its table holds %d", i, len(s.seen), most)
		}
	}
}

// Requests go on while nodes tell each other: none is told of twice or never.
func TestSharingBesideRequests(t *testing.T) {
	start := time.Now()
	c := newCluster(2, 0, maxCount, start)
	client := netip.MustParseAddr("10.0.0.1")
	const goroutines, each = 4, 5000
	var asking sync.WaitGroup
	for i := range goroutines {
		asking.Go(func() {
			for range each {
				c.limiters[i%2].take(client, start)
			}
		})
	}
	done := make(chan struct{})
	go func() { asking.Wait(); close(done) }()
	told := 0
	for over := false; !over; {
		select {
		case <-done:
			over = true
		default:
		}
		told += c.tell(start)
	}
	told += c.tell(start)
	if told != goroutines*each {
		t.Errorf("%d granted, %d told of", goroutines*each, told)
	}
	for i, l := range c.limiters {
		if got := l.take(client, start); maxCount-got.remaining != goroutines*each+1 {
			t.Errorf("node %d counts %d", i, maxCount-got.remaining)
		}
	}
}
