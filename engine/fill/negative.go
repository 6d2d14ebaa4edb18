package fill

import (
	"time"

	"ledgerd/engine/ledger"
)

const (
	// maxNegative bounds the negative cache, at some hundred bytes a key.
	// Past it the oldest keys are evicted.
	maxNegative = 1 << 16
	// NegativeFor is how long an entry is valid: a client that polls for an account that does not
	// exist causes one request to the node in this time.
	NegativeFor = 10 * time.Second
)

// negativeCache has keys that do not exist since a slot, or that a filter excludes. All entries are valid equally long, so
// the oldest expires first.
type negativeCache struct {
	keys  map[ledger.Pubkey]absence
	order []expiry // oldest first; may have entries of keys that were removed or added again
}

// absence is why a key is not held.
type absence struct {
	since    ledger.Slot // the key does not exist since then
	unwanted bool        // the key may exist: a filter excludes it
	until    time.Time   // the end of the entry
}

type expiry struct {
	key   ledger.Pubkey
	until time.Time
}

// add adds a key and evicts entries that expired or are too many.
func (c *negativeCache) add(key ledger.Pubkey, a absence, now time.Time) {
	if c.keys == nil {
		c.keys = make(map[ledger.Pubkey]absence)
	}
	a.until = now.Add(NegativeFor)
	c.keys[key] = a
	c.order = append(c.order, expiry{key, a.until})
	for len(c.order) > maxNegative || len(c.order) > 0 && !now.Before(c.order[0].until) {
		oldest := c.order[0]
		c.order = c.order[1:]
		if c.keys[oldest.key].until.Equal(oldest.until) {
			delete(c.keys, oldest.key)
		}
	}
}

// find returns the valid entry of a key.
func (c *negativeCache) find(key ledger.Pubkey, now time.Time) (absence, bool) {
	a, ok := c.keys[key]
	return a, ok && now.Before(a.until)
}

// forgetAlive removes keys that a block left alive.
func (c *negativeCache) forgetAlive(writes []ledger.AccountWrite) {
	if len(c.keys) == 0 {
		return
	}
	for i := range writes {
		if writes[i].Lamports > 0 {
			delete(c.keys, writes[i].Pubkey)
		}
	}
}

// clear removes all keys.
func (c *negativeCache) clear() { c.keys, c.order = nil, nil }

// remembered returns the entry of a key in the negative cache.
func (f *Filler) remembered(key ledger.Pubkey) (absence, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.negative.find(key, time.Now())
}
