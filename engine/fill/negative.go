package fill

import (
	"time"

	"ledgerd/engine/ledger"
)

const (
	// maxNegative bounds the keys that are remembered not to exist, at some hundred bytes each.
	// Past it the oldest are forgotten: then a question about them asks the node again.
	maxNegative = 1 << 16
	// NegativeFor is how long a key is remembered: a client that polls for an account that does not
	// exist makes the node be asked that often.
	NegativeFor = 10 * time.Second
)

// negativeCache holds keys that do not exist, each since a slot, or that a filter keeps out. All are remembered equally long, so the
// oldest is the next to be forgotten.
type negativeCache struct {
	keys  map[ledger.Pubkey]absence
	order []expiry // oldest first; some were forgotten since, or remembered anew
}

// absence says why a key is not held.
type absence struct {
	since    ledger.Slot // from which on it does not exist
	unwanted bool        // it may exist: a filter keeps it out
	until    time.Time
}

type expiry struct {
	key   ledger.Pubkey
	until time.Time
}

// add remembers a key.
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

// find returns what is remembered of a key.
func (c *negativeCache) find(key ledger.Pubkey, now time.Time) (absence, bool) {
	a, ok := c.keys[key]
	return a, ok && now.Before(a.until)
}

// forgetAlive forgets keys that a block left alive.
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

// clear forgets all of them.
func (c *negativeCache) clear() { c.keys, c.order = nil, nil }

// remembered returns what is known of a key that is not held.
func (f *Filler) remembered(key ledger.Pubkey) (absence, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.negative.find(key, time.Now())
}
