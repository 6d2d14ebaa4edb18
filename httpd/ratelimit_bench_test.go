package httpd

import (
	"math/rand/v2"
	"net/netip"
	"runtime"
	"testing"
	"time"
)

// mostLimiterBytes is far more than a full table takes, and far less than one without a bound does
// after ten million clients.
const mostLimiterBytes = 16 << 20

// BenchmarkLimiterTakeAmongAFullTable tells what a request of a known client costs when every
// place is taken and each client comes from anywhere in the table.
func BenchmarkLimiterTakeAmongAFullTable(b *testing.B) {
	start := time.Now()
	l := newLimiter(1<<30, 0, defaultBuckets, start)
	clients := make([]netip.Addr, defaultBuckets*ways/2)
	for i := range clients {
		clients[i] = sprayed(i)
		l.take(clients[i], start)
	}
	rand.Shuffle(len(clients), func(i, k int) { clients[i], clients[k] = clients[k], clients[i] })
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		l.take(clients[i], start)
		if i++; i == len(clients) {
			i = 0
		}
	}
}

// BenchmarkLimiterSpray has ten million clients come, each once, and the time go on by a minute
// meanwhile. It tells what one costs and what the table takes afterwards, which is bounded.
func BenchmarkLimiterSpray(b *testing.B) {
	const addresses = 10_000_000
	for range b.N {
		start := time.Now()
		before := heapBytes()
		l := newLimiter(100, 1000, defaultBuckets, start)
		b.ResetTimer()
		for i := range addresses {
			l.take(sprayed(i), start.Add(time.Duration(i)*(time.Minute/addresses)))
		}
		b.StopTimer()
		took := b.Elapsed()
		after := heapBytes()
		if after > before+mostLimiterBytes {
			b.Errorf("the heap grew from %d to %d bytes", before, after)
		}
		b.ReportMetric(float64(took.Nanoseconds())/addresses, "ns/client")
		b.ReportMetric(float64(int64(after)-int64(before))/(1<<20), "MiB-held")
		runtime.KeepAlive(l)
	}
}
