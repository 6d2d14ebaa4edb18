package apikey

import (
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"io"
	"net/netip"
	"strconv"
	"sync/atomic"
	"time"

	"ledgerd/httpd/promtext"
	"ledgerd/httpd/ratelimit"
)

type digest [sha256.Size]byte

// prefix is in front of every key, so that people and scanners for secrets know one.
const prefix = "ledgerd_"

// New makes a key: its text, of which 256 bits are random, and the hash of that for a file.
func New() (text, hash string) {
	var secret [32]byte
	_, _ = rand.Read(secret[:]) // which never fails
	text = prefix + base64.RawURLEncoding.EncodeToString(secret[:])
	d := digest(sha256.Sum256([]byte(text)))
	return text, hashPrefix + hex.EncodeToString(d[:])
}

// Key is one caller.
type Key struct {
	client  netip.Addr
	tier    atomic.Pointer[tier]
	meter   *ratelimit.Meter
	files   *ratelimit.Meter // of the files of pages
	revoked atomic.Bool
}

// tier is a Tier in use.
type tier struct {
	Tier
	name              string
	requests, limited *atomic.Uint64 // they outlive the file
}

// Client returns what a request with the key, from an address, counts for: a client at an address that no connection has, because it is of a zone.
func (k *Key) Client(from netip.Addr) ratelimit.Client {
	t := k.tier.Load()
	return ratelimit.Client{Key: k.client, Addr: from, Exempt: t.Exempt, Sockets: int(t.Sockets), Revoked: &k.revoked}
}

// Tier returns the name of the key's tier.
func (k *Key) Tier() string { return k.tier.Load().name }

// Take asks for n requests at once: all are granted, or none is. With 0 it returns what is left.
func (k *Key) Take(n int, now time.Time) ratelimit.Allowance {
	t := k.tier.Load()
	t.requests.Add(uint64(n))
	if t.Exempt {
		return ratelimit.Unlimited
	}
	a := k.meter.Take(int(t.PerMinute), int(t.PerHour), n, now)
	if !a.Allowed {
		t.limited.Add(uint64(n))
	}
	return a
}

// TakeFile asks for one of so many files that pages load. A page and its files count once: it takes nothing of what the key has left, and
// files have a limit of their own, as if each page that the key may load loaded all of them.
func (k *Key) TakeFile(files int, now time.Time) ratelimit.Allowance {
	t := k.tier.Load() // one that is exempt has no limits
	if a := k.files.Take(int(t.PerMinute)*files, int(t.PerHour)*files, 1, now); !a.Allowed {
		return a
	}
	return k.Take(0, now)
}

// Ring finds keys.
type Ring struct {
	usual   Tier
	start   time.Time
	held    atomic.Pointer[held]
	unknown atomic.Uint64
	made    atomic.Uint64 // keys ever: one that comes back after it was revoked is another one
}

// held are the keys by their hashes. The time of a look-up may reveal which hashes exist. A hash does not reveal its key, of which 256 bits are
// random.
type held struct {
	keys  map[digest]*Key
	tiers map[string]*tier
}

// NewRing returns a ring without keys. usual is what callers without a key may do, start any instant before the first request.
func NewRing(usual Tier, start time.Time) *Ring {
	r := &Ring{usual: usual, start: start}
	r.held.Store(new(held))
	return r
}

// Find returns the key with a text, nil if there is none.
func (r *Ring) Find(text []byte) *Key {
	k := r.held.Load().keys[sha256.Sum256(text)]
	if k == nil {
		r.unknown.Add(1)
	}
	return k
}

// SetUsual changes what callers without a key may do. The next Load looks at it; the two are called by one goroutine at a time.
func (r *Ring) SetUsual(t Tier) { r.usual = t }

// Load takes over what a file holds. Keys that are gone are revoked. It is called by one goroutine at a time.
func (r *Ring) Load(f *File) {
	before := r.held.Load()
	now := &held{keys: make(map[digest]*Key), tiers: make(map[string]*tier)}
	for name, t := range f.Tiers {
		fresh := &tier{Tier: t, name: name, requests: new(atomic.Uint64), limited: new(atomic.Uint64)}
		if !t.Exempt {
			fresh.PerMinute, fresh.PerHour = cmp.Or(t.PerMinute, r.usual.PerMinute), cmp.Or(t.PerHour, r.usual.PerHour)
		}
		if old := before.tiers[name]; old != nil {
			fresh.requests, fresh.limited = old.requests, old.limited
		}
		now.tiers[name] = fresh
	}
	for _, e := range f.Keys {
		hash, _ := e.digest() // a File is checked
		k := before.keys[hash]
		if k == nil {
			k = &Key{client: netip.IPv6Unspecified().WithZone("key:" + strconv.FormatUint(r.made.Add(1), 10)), meter: ratelimit.NewMeter(r.start), files: ratelimit.NewMeter(r.start)}
		}
		k.tier.Store(now.tiers[e.Tier])
		now.keys[hash] = k
	}
	r.held.Store(now)
	for hash, k := range before.keys {
		k.revoked.Store(now.keys[hash] == nil)
	}
}

// Write writes the metrics: by tier, never by key.
func (r *Ring) Write(w io.Writer) {
	h := r.held.Load()
	requests, limited, keys := make(map[string]uint64), make(map[string]uint64), make(map[string]uint64)
	for name, t := range h.tiers {
		requests[name], limited[name], keys[name] = t.requests.Load(), t.limited.Load(), 0
	}
	for _, k := range h.keys {
		keys[k.tier.Load().name]++
	}
	promtext.Each(w, "ledgerd_api_keys", "gauge", "API keys, by their tier.", "tier", keys)
	promtext.Each(w, "ledgerd_api_key_requests_total", "counter", "Requests with an API key, by its tier.", "tier", requests)
	promtext.Each(w, "ledgerd_api_key_limited_total", "counter", "Requests with an API key refused with 429, by its tier.", "tier", limited)
	promtext.Value(w, "ledgerd_api_key_unknown_total", "counter", "Requests with an API key that nobody has: answered with 401, or with 429 past the limit of their address.", r.unknown.Load())
}
