package ratelimit

import (
	"hash/maphash"
	"math/bits"
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

// init makes room for at least so many buckets.
func (t *table) init(buckets int) {
	t.seed = maphash.MakeSeed()
	t.buckets = make([]bucket, 1<<bits.Len(uint(max(buckets, 1)-1)))
}

// find returns the counter to count a request of the client in. It allocates only for a
// client it does not hold.
func (t *table) find(client netip.Addr, at instant, limits *[Kinds]int) *counter {
	key := client.As16()
	b := &t.buckets[maphash.Bytes(t.seed, key[:])&uint64(len(t.buckets)-1)]
	for {
		held := b.entries.Load()
		if held == nil {
			held = new([ways]*entry)
			b.entries.CompareAndSwap(nil, held)
			continue
		}
		for _, e := range held {
			if e != nil && e.key == key && !e.counter.isGone() {
				return &e.counter
			}
		}
		free, ok := makeRoom(held, at, limits)
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

// makeRoom returns the index of an entry that is free, after it has evicted the client that
// used the least of its limits if none was. It is not ok if all are past half.
func makeRoom(held *[ways]*entry, at instant, limits *[Kinds]int) (free int, ok bool) {
	for {
		least, leastUsed, leastWord := -1, 0, uint64(0)
		for i, e := range held {
			if e == nil || e.counter.isGone() {
				return i, true
			}
			used, evictable, word := e.counter.use(at, limits)
			if evictable && (least < 0 || used < leastUsed) {
				least, leastUsed, leastWord = i, used, word
			}
		}
		if least < 0 {
			return 0, false
		}
		if held[least].counter.evict(leastWord) {
			return least, true
		}
	}
}
