package fill

import (
	"time"

	"ledgerd/engine/ledger"
)

const (
	// maxNegative bounds the negative cache, at some hundred bytes a key. A full cache is emptied.
	maxNegative = 1 << 16
	// NegativeFor is how long an entry is valid: a client that polls for an account that does not
	// exist causes one request to the node in this time.
	NegativeFor = 10 * time.Second
)

// absence is an entry of the negative cache: why a key is not held.
type absence struct {
	since    ledger.Slot // the key does not exist since then
	unwanted bool        // the key may exist: a filter excludes it
	until    time.Time   // the end of the entry
}

// addNegativeLocked adds an entry, whose end it sets, to the negative cache.
func (f *Filler) addNegativeLocked(key ledger.Pubkey, a absence) {
	if len(f.negative) == maxNegative {
		clear(f.negative)
	}
	a.until = time.Now().Add(NegativeFor)
	f.negative[key] = a
}

// remembered returns the valid entry of a key in the negative cache.
func (f *Filler) remembered(key ledger.Pubkey) (absence, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	a := f.negative[key]
	return a, time.Now().Before(a.until)
}
