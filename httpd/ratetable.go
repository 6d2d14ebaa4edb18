package httpd

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
// nobody outside can predict, and has one of its places.
type table struct {
	seed    maphash.Seed
	buckets []bucket
}

// bucket holds a few clients. The set of its places is never changed but replaced as a
// whole, so two newcomers with one key cannot both get a place.
type bucket struct {
	places   atomic.Pointer[[ways]*place]
	overflow counter // of newcomers without a place
}

// place is a client's place in the table.
type place struct {
	key     [16]byte
	counter counter
}

// init makes room for at least buckets buckets.
func (t *table) init(buckets int) {
	t.seed = maphash.MakeSeed()
	t.buckets = make([]bucket, 1<<bits.Len(uint(max(buckets, 1)-1)))
}

// find returns the counter to count a request of the client in. It allocates only for a
// client it does not hold.
func (t *table) find(client netip.Addr, at instant, limits *[windowKinds]int) *counter {
	key := client.As16()
	b := &t.buckets[maphash.Bytes(t.seed, key[:])&uint64(len(t.buckets)-1)]
	for {
		held := b.places.Load()
		if held == nil {
			held = new([ways]*place)
			b.places.CompareAndSwap(nil, held)
			continue
		}
		for _, p := range held {
			if p != nil && p.key == key && !p.counter.isGone() {
				return &p.counter
			}
		}
		free, ok := makePlace(held, at, limits)
		if !ok {
			return &b.overflow
		}
		next, p := *held, &place{key: key}
		next[free] = p
		if b.places.CompareAndSwap(held, &next) {
			return &p.counter
		}
	}
}

// each visits the clients that have a place.
func (t *table) each(visit func(*place)) {
	for i := range t.buckets {
		held := t.buckets[i].places.Load()
		if held == nil {
			continue
		}
		for _, p := range held {
			if p != nil && !p.counter.isGone() {
				visit(p)
			}
		}
	}
}

// makePlace returns the index of a place nobody holds any more, disposing of the client
// that used the least of its limits if it has to. It is not ok if all are past half.
func makePlace(held *[ways]*place, at instant, limits *[windowKinds]int) (free int, ok bool) {
	for {
		least, leastUsed, leastWord := -1, 0, uint64(0)
		for i, p := range held {
			if p == nil || p.counter.isGone() {
				return i, true
			}
			used, droppable, word := p.counter.use(at, limits)
			if droppable && (least < 0 || used < leastUsed) {
				least, leastUsed, leastWord = i, used, word
			}
		}
		if least < 0 {
			return 0, false
		}
		if held[least].counter.dispose(leastWord) {
			return least, true
		}
	}
}
