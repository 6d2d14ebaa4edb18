package stream

import (
	"slices"
	"sort"
	"sync/atomic"

	"ledgerd/engine/ledger"
)

// updateBytes is about what an update holds with all it points to but data, and an emission besides.
const updateBytes = 256

// size returns about what an emission takes.
func (e *emission) size() int { return (1+len(e.updates))*updateBytes + e.dataBytes }

// sizeAmong returns about what an emission takes beside so many others of the same updates.
func (e *emission) sizeAmong(others int) int {
	if others > 0 {
		return updateBytes
	}
	return e.size()
}

// setUpdates gives an emission its updates.
func (e *emission) setUpdates(updates []ledger.Update) {
	e.updates = updates
	for i := range updates {
		e.dataBytes += updates[i].Account.Data.SizeBytes() + updates[i].DataBefore.Value.SizeBytes()
	}
}

// recent keeps the newest emissions of a level, whether or not there are subscribers, for clients
// that resume. The hub's lock guards it.
type recent struct {
	limitBytes int
	emissions  []*emission // the newest of all, whatever its size, is always there
	bytes      int
	begun      bool
	// whole is the oldest seq of which all frames are held, and of every later one. The frames that carry the last seq before are gone, or
	// were never here: an update, and then the end of its block.
	whole ledger.Seq

	gone atomic.Int64 // how many emissions were dropped; read without the lock
}

// begin says that everything is kept from a record on, whose updates begin with a seq. Nothing came before the first of all.
func (r *recent) begin(first ledger.Seq) {
	if r.begun {
		return
	}
	if r.begun = true; first > 1 {
		r.whole = first
	}
}

// keep takes in an emission, and drops the oldest while they are too large. It returns how much more memory the levels take together.
func (r *recent) keep(e *emission) (grown int) {
	r.emissions = append(r.emissions, e)
	r.bytes += e.size()
	grown = e.sizeAmong(*e.keptBy)
	*e.keptBy++
	for r.bytes > r.limitBytes && len(r.emissions) > 1 {
		oldest := r.emissions[0]
		r.bytes -= oldest.size()
		r.emissions[0] = nil
		r.emissions = r.emissions[1:]
		r.whole = oldest.lastSeq + 1
		r.gone.Add(1)
		*oldest.keptBy--
		grown -= oldest.sizeAmong(*oldest.keptBy)
	}
	return grown
}

// oldest returns the oldest seq that a client can resume from, given the newest of the level.
func (r *recent) oldest(newest ledger.Seq) ledger.Seq {
	if !r.begun {
		return newest
	}
	return min(r.whole, newest)
}

// lacks reports whether frames that carry a seq, or a later one, are not held.
func (r *recent) lacks(seq, newest ledger.Seq) bool {
	if !r.begun {
		return seq <= newest && newest > 0
	}
	return seq < r.whole
}

// total returns how many emissions came so far.
func (r *recent) total() int64 { return r.gone.Load() + int64(len(r.emissions)) }

// between returns the emissions that came after there had been so many in total, until there were so
// many, as far as they are kept. Not whole means that not all of them are.
func (r *recent) between(total, until int64) (out []*emission, whole bool) {
	gone := r.gone.Load()
	return slices.Clone(r.emissions[max(total-gone, 0):max(until-gone, 0)]), total >= gone
}

// after returns the emissions that hold frames after a seq.
func (r *recent) after(seq ledger.Seq) []*emission {
	first := sort.Search(len(r.emissions), func(i int) bool { return r.emissions[i].lastSeq >= seq })
	return slices.Clone(r.emissions[first:])
}
