package engine

import (
	"time"

	"ledgerd/engine/ledger"
)

const (
	// maxAbsences bounds the keys that are remembered not to exist, at some hundred bytes each.
	// Past it the oldest are forgotten: then a question about them asks the node again.
	maxAbsences = 1 << 16
	// absentFor is how long a key is remembered: one that polls for an account that does not
	// exist asks the node that often.
	absentFor = 10 * time.Second
)

// absences are keys that do not exist, each as of a slot, or that are not to be held. All are remembered equally long, so the
// oldest is the next to be forgotten.
type absences struct {
	keys  map[ledger.Pubkey]absentKey
	order []rememberedKey // oldest first; some were forgotten since, or remembered anew
}

// absentKey is one of them.
type absentKey struct {
	since    ledger.Slot // the slot as of which it does not exist
	unwanted bool        // it may exist: a filter keeps it out
	until    time.Time
}

type rememberedKey struct {
	key   ledger.Pubkey
	until time.Time
}

// add remembers a key.
func (a *absences) add(key ledger.Pubkey, what absentKey, now time.Time) {
	if a.keys == nil {
		a.keys = make(map[ledger.Pubkey]absentKey)
	}
	until := now.Add(absentFor)
	what.until = until
	a.keys[key] = what
	a.order = append(a.order, rememberedKey{key, until})
	for len(a.order) > 0 && (len(a.order) > maxAbsences || !now.Before(a.order[0].until)) {
		oldest := a.order[0]
		a.order = a.order[1:]
		if a.keys[oldest.key].until.Equal(oldest.until) {
			delete(a.keys, oldest.key)
		}
	}
}

// find returns what is remembered of a key.
func (a *absences) find(key ledger.Pubkey, now time.Time) (absentKey, bool) {
	k, ok := a.keys[key]
	return k, ok && now.Before(k.until)
}

// made forgets keys that a block left alive.
func (a *absences) made(writes []ledger.AccountWrite) {
	if len(a.keys) == 0 {
		return
	}
	for i := range writes {
		if writes[i].Lamports > 0 {
			delete(a.keys, writes[i].Pubkey)
		}
	}
}

// clear forgets all of them.
func (a *absences) clear() { a.keys, a.order = nil, nil }
