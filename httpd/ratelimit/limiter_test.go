package ratelimit

import (
	"encoding/binary"
	"math"
	"net/netip"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/valyala/fasthttp"
	"pgregory.net/rapid"

	"ledgerd/engine/ledger/ledgertest"
)

// naiveWindow and naiveLimiter say what the limiter means, without any thought of speed.
type naiveWindow struct {
	start time.Duration
	used  int
}

type naiveLimiter struct {
	limits  [Kinds]int
	clients map[netip.Addr]*[Kinds]naiveWindow
}

func (n *naiveLimiter) take(key netip.Addr, requests int, at time.Duration) Allowance {
	if n.limits == [Kinds]int{} {
		return Unlimited
	}
	c := n.clients[key]
	if c == nil {
		c = new([Kinds]naiveWindow)
		n.clients[key] = c
	}
	live := *c
	for k := range live {
		if live[k].used == 0 || at >= live[k].start+windowLength[k] {
			live[k] = naiveWindow{start: at}
		}
	}
	allowed := true
	for k, w := range live {
		allowed = allowed && (n.limits[k] == 0 || w.used+requests <= n.limits[k])
	}
	told := Allowance{Remaining: math.MaxInt}
	for k := range live {
		if allowed {
			live[k].used += requests
		}
		a := Allowance{Allowed: allowed, Window: Kind(k), Limit: n.limits[k], Remaining: max(n.limits[k]-live[k].used, 0), Reset: live[k].start + windowLength[k] - at}
		if a.Limit > 0 && (a.Remaining < told.Remaining || a.Remaining == told.Remaining && a.Reset > told.Reset) {
			told = a
		}
	}
	if allowed {
		*c = live
	}
	return told
}

// jumped returns an instant as a clock shows it that was set: the wall reading has moved, the monotonic one has not.
func jumped(at time.Time, by time.Duration) time.Time {
	*(*uint64)(unsafe.Pointer(&at)) += uint64(by/time.Second) << 30 // where time.Time has the seconds of the wall
	return at
}

// F19: every answer agrees with the naive limiter, over random clients and times, however the clock and the limits are set meanwhile.
func TestLimiterAgreesWithTheNaiveOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		perMinute, perHour := rapid.IntRange(0, 6), rapid.IntRange(0, 12)
		start := time.Now()
		l := newLimiter(0, 0, 64, start)
		naive := &naiveLimiter{clients: make(map[netip.Addr]*[Kinds]naiveWindow)}
		at := time.Duration(0)
		for i := range rapid.IntRange(1, 200).Draw(t, "requests") {
			if i%50 == 0 {
				naive.limits = [Kinds]int{perMinute.Draw(t, "minute"), perHour.Draw(t, "hour")}
				l.SetLimits(naive.limits[Minute], naive.limits[Hour])
			}
			at += time.Duration(rapid.SampledFrom([]int{0, 0, 0, 1, 900, 15_000, 59_999, 60_000, 1_000_000}).Draw(t, "ms")) * time.Millisecond
			client := netip.AddrFrom4([4]byte{10, 0, 0, rapid.Byte().Draw(t, "client") % 4})
			by := time.Duration(rapid.SampledFrom([]int{0, 0, -3600, 3600, 365 * 24 * 3600}).Draw(t, "set by")) * time.Second
			now := jumped(start.Add(at), by)
			if now.Unix() != start.Add(at).Add(by).Unix() || now.Sub(start) != at {
				t.Fatalf("%v set by %v is %v", start.Add(at), by, now)
			}
			requests := rapid.SampledFrom([]int{1, 1, 1, 2, 5}).Draw(t, "at once")
			got, want := l.Take(client, requests, now), naive.take(client, requests, at)
			if got != want {
				t.Fatalf("limits %v: client %s, %d at %s: got %+v, want %+v", naive.limits, client, requests, at, got, want)
			}
		}
	})
}

// race has goroutines take as many times each, and returns how many requests were granted.
func race(goroutines, times int, take func(g, i int) Allowance) int64 {
	var granted atomic.Int64
	var wg sync.WaitGroup
	for g := range goroutines {
		wg.Go(func() {
			for i := range times {
				if take(g, i).Allowed {
					granted.Add(1)
				}
			}
		})
	}
	wg.Wait()
	return granted.Load()
}

// F42, F44: TestNeverMoreThanTheLimit lets many goroutines fight over one window, and over the places of its bucket with clients that nobody has seen. Who is
// past half when that starts never gets more than the rest.
func TestNeverMoreThanTheLimit(t *testing.T) {
	start := time.Now()
	for _, limits := range [][2]int{{100, 1000}, {1000, 100}, {0, 100}, {100, 0}} {
		l := newLimiter(limits[0], limits[1], 1, start)
		busy := netip.MustParseAddr("192.0.2.1")
		l.Take(busy, 51, start)
		granted := race(8, 1000, func(g, i int) Allowance {
			l.Take(sprayed(g*1000+i), 1, start)
			return l.Take(busy, 1, start)
		})
		ledgertest.Equal(t, granted, 49, "limits %v: requests granted", limits)
	}
}

// TestNewcomersRaceForOnePlace lets goroutines meet at clients nobody has seen: two places
// for one client would grant twice.
func TestNewcomersRaceForOnePlace(t *testing.T) {
	start := time.Now()
	l := newLimiter(1, 0, 1, start)
	for i := range 3000 {
		// A minute apart, so that every client finds the places of the ones before expired.
		client, at := sprayed(i), start.Add(time.Duration(i)*time.Minute)
		granted := race(4, 1, func(int, int) Allowance { return l.Take(client, 1, at) })
		ledgertest.Equal(t, granted, 1, "client %d: requests granted", i)
	}
}

// TestWhatTheHourRefusesTheMinuteForgets covers a request that loses the last of the hour
// after it has taken one of the minute.
func TestWhatTheHourRefusesTheMinuteForgets(t *testing.T) {
	var w window
	first, _ := w.take(Minute, 5, 1, 10)
	second, _ := w.take(Minute, 6, 1, 10)
	w.giveBack(second, 1)
	ledgertest.Equal(t, w.look(Minute, 7), reading{start: 5, ends: 60_005, used: 1}, "after one of two was given back")
	w.giveBack(first, 1)
	w.giveBack(first, 1)
	ledgertest.Equal(t, w.look(Minute, 8), reading{start: 8, ends: 60_008}, "after both, which is a window that has not started")
	w.take(Minute, 70_000, 1, 10)
	w.giveBack(first, 1)
	ledgertest.Equal(t, w.look(Minute, 70_001).used, 1, "requests in a new window, after giving back to the one before")
}

// F44: TestWindowEdgeUnderRace lets goroutines step a shared clock over many windows: no window
// may grant more than its limit. The clock is read before the request, as the server does.
func TestWindowEdgeUnderRace(t *testing.T) {
	const limit, windows = 50, 40
	start := time.Now()
	l := newLimiter(limit, 0, 1, start)
	client := netip.MustParseAddr("192.0.2.1")
	var clock atomic.Int64
	granted := race(4, 5000, func(int, int) Allowance {
		ms := clock.Add(120) // 20,000 requests take 2,400 s: 40 minutes
		return l.Take(client, 1, start.Add(time.Duration(ms)*time.Millisecond))
	})
	if granted > limit*(windows+1) {
		t.Errorf("%d granted in %d windows of %d", granted, windows, limit)
	}
}

// F42: TestActiveClientsKeepTheirPlaces fills a bucket with active clients, and sprays it after each: whoever is past half of a limit is
// never forgotten. Newcomers are admitted as long as there is a place, and share one limit where all are taken.
func TestActiveClientsKeepTheirPlaces(t *testing.T) {
	start := time.Now()
	l := newLimiter(10, 100, 1, start)
	take := func(i int) Allowance { return l.Take(netip.AddrFrom4([4]byte{10, 0, 0, byte(i)}), 1, start) }
	for i := range ways {
		for range 6 {
			take(i)
		}
		granted := race(1, 1000, func(_, n int) Allowance { return l.Take(sprayed(1000*i+n), 1, start) })
		ledgertest.Equal(t, granted, map[bool]int64{true: 10, false: 1000}[i == ways-1], "newcomers granted beside %d active clients", i+1)
	}
	for i := range ways {
		ledgertest.Equal(t, take(i).Remaining, 3, "what remains of active client %d, if it was not forgotten", i)
	}
	// When the minutes are over the places are free again: nobody is past half of the hour.
	if a := l.Take(sprayed(9000), 1, start.Add(time.Minute)); !a.Allowed || a.Remaining != 9 {
		t.Errorf("after a minute: %+v, want a place of its own", a)
	}
}

func TestExpiredClientsGoBeforeLiveOnes(t *testing.T) {
	start := time.Now()
	l := newLimiter(10, 10, 1, start)
	live := netip.MustParseAddr("192.0.2.1") // has the first place, and used less than the others did
	l.Take(live, 1, start)
	for i := range 4 * (ways - 1) {
		l.Take(netip.AddrFrom4([4]byte{10, 0, 0, byte(i / 4)}), 1, start)
	}
	later := start.Add(2 * time.Hour)
	l.Take(live, 1, later)
	for i := range ways - 1 {
		l.Take(sprayed(i), 1, later)
	}
	ledgertest.Equal(t, l.Take(live, 1, later).Remaining, 8, "what remains of a live client, beside expired ones")
}

// F42: TestSprayKeepsMemoryFlat has a proxy name many more addresses than a table has places, while a busy client is being limited: ten
// million where LEDGERD_ABUSE is set (make abuse).
func TestSprayKeepsMemoryFlat(t *testing.T) {
	addresses, buckets := 60_000, defaultBuckets/16
	if os.Getenv("LEDGERD_ABUSE") != "" {
		addresses, buckets = 10_000_000, defaultBuckets
	}
	start := time.Now()
	l := newLimiter(100, 1000, buckets, start)
	identity, proxy := testIdentity(), Peer{Trusted: true}
	busy, granted := netip.MustParseAddr("192.0.2.1"), 0
	spray := func(from, to int) {
		var h fasthttp.RequestHeader
		for i := from; i < to; i++ {
			h.Set("X-Forwarded-For", sprayed(i).String())
			l.Take(identity.ClientOf(proxy, &h).Key, 1, start)
			if i%500 == 0 && l.Take(busy, 1, start).Allowed {
				granted++
			}
		}
	}
	for range 60 {
		l.Take(busy, 1, start)
	}
	warm := 5 * ways * buckets // clients for every place
	spray(0, warm)
	before := ledgertest.HeapBytes()
	spray(warm, addresses)
	after := ledgertest.HeapBytes()
	t.Logf("the heap has %d bytes after %d addresses, and %d after %d", before, warm, after, addresses)
	if after > before+1<<20 {
		t.Errorf("the heap grew from %d to %d bytes", before, after)
	}
	ledgertest.Equal(t, granted, 40, "requests that the busy client was granted more")
	runtime.KeepAlive(l)
}

// sprayed returns the i-th of many /64.
func sprayed(i int) netip.Addr {
	var b [16]byte
	b[0] = 0x20
	binary.BigEndian.PutUint32(b[2:], uint32(i))
	return netip.AddrFrom16(b)
}
