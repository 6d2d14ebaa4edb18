package ratelimit

import (
	"hash/maphash"
	"net/netip"
	"sync/atomic"
)

// The table holds 65,536 clients: some 4 MB when full, which is many more clients than
// one node can serve 100 requests a minute each.
const (
	defaultBuckets = 8192
	ways           = 8
)

// table finds the counter of a client. A client belongs to one bucket, by a hash that
// nobody outside can predict, and takes one of its entries.
type table struct {
	seed    maphash.Seed
	buckets []bucket
}

// bucket holds a few clients. The set of its entries is never changed but replaced as a
// whole, so two newcomers with one key cannot both get an entry.
type bucket struct {
	entries  atomic.Pointer[[ways]*entry]
	overflow counter // of newcomers without an entry
}

// entry is one client of the table.
type entry struct {
	key     [16]byte
	counter counter
}

// noEntries is the set of every bucket in the beginning.
var noEntries [ways]*entry

// init makes room for a number of buckets that is a power of two.
func (t *table) init(buckets int) {
	t.seed = maphash.MakeSeed()
	t.buckets = make([]bucket, buckets)
	for i := range t.buckets {
		t.buckets[i].entries.Store(&noEntries)
	}
}

// find returns the counter to count a request of the client in. It allocates only for a
// client it does not hold.
func (t *table) find(client netip.Addr, at instant, limits *limits) *counter {
	key := client.As16()
	b := &t.buckets[maphash.Bytes(t.seed, key[:])&uint64(len(t.buckets)-1)]
	for {
		held := b.entries.Load()
		for _, e := range held {
			if e != nil && e.key == key {
				return &e.counter
			}
		}
		free, ok := roomIn(held, at, limits)
		if !ok {
			return &b.overflow
		}
		next, e := *held, &entry{key: key}
		next[free] = e
		if b.entries.CompareAndSwap(held, &next) {
			return &e.counter
		}
	}
}

// roomIn returns the index of an entry that is free or, if none is, of the client to evict: the
// one that used the least of its limits. It is not ok if all are past half.
func roomIn(held *[ways]*entry, at instant, limits *limits) (free int, ok bool) {
	const half = 500 // thousandths
	leastUsed := half + 1
	for i, e := range held {
		if e == nil {
			return i, true
		}
		if used := e.counter.use(at, limits); used < leastUsed {
			free, leastUsed = i, used
		}
	}
	return free, leastUsed <= half
}
