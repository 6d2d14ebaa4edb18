package stream

import (
	"slices"
	"sync"

	"ledgerd/engine/ledger"
	"ledgerd/httpd/stream/frame"
)

// digest is the newest state of every account that the recent emissions of a level changed,
// as of a position in the level's rings. A conflating subscriber that lags in its ring receives
// the part that changed since what it has seen, and goes on from that position. Whether a state
// belongs to the part depends on the state's own seq alone, so one digest serves all.
type digest struct {
	emissions []*emission
	whole     ledger.Seq // the digest is complete for those that have seen this seq or a later one
	seq       ledger.Seq
	at        [forms]*cursor // nil where there is no ring

	building sync.Once
	parts    []partRef // in log order
}

// partRef names a part of one of a digest's emissions.
type partRef struct{ emission, part int32 }

// A digest is used again while its position lags by at most an eighth of a ring, and conflating
// subscribers jump when they lag by a quarter. So one that jumps is lapped meanwhile only if
// that takes more than half as long as a lap.
const (
	digestShare = 8
	jumpShare   = 4
)

// digestLocked returns a digest of a level whose rings include r. The first that uses it builds it.
func (h *Hub) digestLocked(level ledger.Commitment, r *ring) *digest {
	a := &h.levels[level]
	if a.digest != nil && a.digest.at[r.form] != nil && !a.digest.at[r.form].lagsBy(1, digestShare) {
		return a.digest
	}
	_, newest := h.positionLocked(level)
	kept := &h.recent[level]
	d := &digest{emissions: kept.after(0), whole: kept.oldest(newest), seq: newest}
	for f, r := range a.rings {
		d.at[f] = r.newest()
	}
	a.digest = d
	return d
}

// forgetDigest drops a digest that would not be used again.
func (a *audience) forgetDigest() {
	if a.digest == nil {
		return
	}
	for _, at := range a.digest.at {
		if at != nil && at.lagsBy(1, digestShare) {
			a.digest = nil
			return
		}
	}
}

// build finds the newest state of each account. Of rollback and slot_end frames only those of the
// newest emission are part of the digest.
func (d *digest) build() {
	updates := 0
	for _, e := range d.emissions {
		updates += len(e.updates)
	}
	seen := make(map[ledger.Pubkey]struct{}, updates/4)
	last := len(d.emissions) - 1
	for n, e := range slices.Backward(d.emissions) {
		if n == last {
			d.parts = append(d.parts, partRef{int32(n), int32(e.ending())})
		}
		for i := range slices.Backward(e.updates) {
			k := e.updates[i].Account.Pubkey
			if _, newer := seen[k]; !newer {
				seen[k] = struct{}{}
				d.parts = append(d.parts, partRef{int32(n), int32(i)})
			}
		}
		if n == last {
			d.parts = append(d.parts, partRef{int32(n), opening})
		}
	}
	slices.Reverse(d.parts)
}

// digestCursor is a subscriber's reader of a digest.
type digestCursor struct {
	*digest
	form form
	seen ledger.Seq
	read int // of parts
}

// next appends the next frames to the batch, as many as fit; none at the end.
func (c *digestCursor) next(to *batch) {
	for ; c.read < len(c.parts) && to.hasRoom(); c.read++ {
		ref := c.parts[c.read]
		if e, part := c.emissions[ref.emission], int(ref.part); e.after(part, c.seen) {
			to.add(e.appendPart(to.data, c.form, part), e.seq(part))
		}
	}
}

// digest returns a digest to go on from; nil if something waits that says how to go on.
func (s *subscriber) digest() *digest {
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	if !s.outbox.holdsOnlyAnswers() {
		return nil
	}
	return s.hub.digestLocked(s.level, s.at.ring)
}

// jump sends a conflating subscriber that lags in its ring the newest state of what it missed, and
// goes on from there. Not ok means that it missed more than what is kept, or has turned away
// from the ring meanwhile.
func (s *subscriber) jump() (ok bool, err error) {
	for {
		d := s.digest()
		seen := max(s.sent, s.at.seq)
		if d == nil || seen < d.whole {
			return false, nil
		}
		d.building.Do(d.build)
		at := *d.at[s.at.ring.form]
		gap := frame.AppendText(nil, func(b []byte) []byte { return appendGap(b, seen, d.seq) })
		if err := s.writeOnce(batch{data: gap, frames: 1}); err != nil {
			return false, err
		}
		s.hub.meters.gaps.Inc()
		c := &digestCursor{digest: d, form: at.ring.form, seen: seen}
		done, err := s.writeFrames(c.next, at.lapped)
		if err != nil || s.outbox.endsAtOnce() {
			return true, err
		}
		if done {
			at.seq = max(at.seq, d.seq)
			s.at = at
			return true, nil
		}
	}
}
