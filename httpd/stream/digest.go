package stream

import (
	"strconv"
	"sync"

	"ledgerd/engine/ledger"
)

// digest is the newest state of every account that the recent emissions of a level changed,
// as of a place in the level's rings. Whoever has fallen behind in a ring and asked for
// conflation is told the part that changed since, and goes on from there. Whether a state
// belongs to that part depends on its own seq alone, so one digest serves all.
type digest struct {
	emissions []*emission
	whole     ledger.Seq // it is good for who has seen this seq or a later one
	seq       ledger.Seq
	at        [forms]*cursor // nil where there is no ring

	building sync.Once
	states   []stateRef // in log order
}

// stateRef names an update of a digest's emissions.
type stateRef struct{ emission, update int32 }

// digestShare is the part of a ring that may lie behind a digest for it to be used again, and
// half of the part a conflating reader may be behind. So it is lapped while it is told only if
// it takes more than half of the time a lap takes.
const digestShare = 8

// behind reports whether a cursor is further behind its ring's head than some eighths of it.
func (c *cursor) behind(eighths int) bool {
	return c.ring != nil && c.head().number()-c.block.number > uint64(eighths*len(c.ring.slots)/digestShare)
}

// digestLocked returns a digest of a level whose rings include r, to be built by whoever comes first.
func (h *Hub) digestLocked(level ledger.Commitment, r *ring) *digest {
	a := &h.levels[level]
	if a.digest != nil && a.digest.at[r.form] != nil && !a.digest.at[r.form].behind(1) {
		return a.digest
	}
	_, newest := h.positionLocked(level)
	kept := &h.recent[level]
	d := &digest{emissions: kept.after(0), whole: kept.oldest(newest), seq: newest}
	for f, r := range a.rings {
		if r != nil {
			d.at[f] = r.newest()
		}
	}
	a.digest = d
	return d
}

// forgetDigest drops a digest that nobody would use again.
func (a *audience) forgetDigest() {
	if a.digest == nil {
		return
	}
	for _, at := range a.digest.at {
		if at != nil && at.behind(1) {
			a.digest = nil
			return
		}
	}
}

// build finds the newest state of each account.
func (d *digest) build() {
	updates := 0
	for _, e := range d.emissions {
		updates += len(e.updates)
	}
	seen := make(map[ledger.Pubkey]struct{}, updates/4)
	for n := len(d.emissions) - 1; n >= 0; n-- {
		e := d.emissions[n]
		for i := len(e.updates) - 1; i >= 0; i-- {
			k := e.updates[i].Account.Pubkey
			if _, told := seen[k]; !told {
				seen[k] = struct{}{}
				d.states = append(d.states, stateRef{int32(n), int32(i)})
			}
		}
	}
	for i, k := 0, len(d.states)-1; i < k; i, k = i+1, k-1 {
		d.states[i], d.states[k] = d.states[k], d.states[i]
	}
}

// telling is a digest as it is told to one subscriber.
type telling struct {
	*digest
	form   form
	seen   ledger.Seq
	next   int // of states
	opened bool
	ended  bool
}

// frames returns the next frames, as many as fit in room; none at the end. Of rollback and
// slot_end frames only those of the newest emission are told.
func (t *telling) frames(room []byte) piece {
	p := piece{data: room}
	newest := len(t.emissions) - 1
	add := func(data []byte, seq ledger.Seq) {
		if len(data) > len(p.data) {
			p.data, p.seq = data, max(p.seq, seq)
			p.frames++
		}
	}
	for !t.ended && cap(p.data)-len(p.data) > maxFrameBytes {
		switch {
		case !t.opened && newest >= 0 && (t.next == len(t.states) || int(t.states[t.next].emission) == newest):
			if t.opened = true; t.form == extended && t.emissions[newest].openingAfter(t.seen) {
				add(t.emissions[newest].appendOpening(p.data), 0)
			}
		case t.next < len(t.states):
			at := t.states[t.next]
			t.next++
			if e, i := t.emissions[at.emission], int(at.update); e.updateAfter(i, t.seen) {
				add(e.appendUpdate(p.data, t.form, i), e.seq(i))
			}
		default:
			if t.ended = true; t.form == extended && newest >= 0 && t.emissions[newest].endingAfter(t.seen) {
				add(t.emissions[newest].appendEnding(p.data), t.emissions[newest].lastSeq)
			}
		}
	}
	return p
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

// jump tells a conflating subscriber that has fallen behind in its ring the newest state of
// what it missed, and goes on from there. Not ok is who missed more than what is kept, or has turned away from
// the ring meanwhile.
func (s *subscriber) jump() (ok bool, err error) {
	for {
		d := s.digest()
		seen := max(s.sent, s.at.seq)
		if d == nil || seen < d.whole {
			return false, nil
		}
		d.building.Do(d.build)
		at := *d.at[s.at.ring.form]
		gap := appendFrame(nil, func(b []byte) []byte { return appendGap(b, seen, d.seq) })
		if err := s.writeOnce(one(gap, 0)); err != nil {
			return false, err
		}
		s.hub.meters.gaps.Inc()
		done, err := s.writeFrames((&telling{digest: d, form: at.ring.form, seen: seen}).frames, at.lapped)
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

// appendGap appends that of what lies after one seq, up to another, only the newest state of
// each account is told.
func appendGap(b []byte, from, to ledger.Seq) []byte {
	b = append(b, `{"type":"gap","from_seq":`...)
	b = strconv.AppendUint(b, uint64(from), 10)
	b = append(b, `,"to_seq":`...)
	b = strconv.AppendUint(b, uint64(to), 10)
	return append(b, '}')
}
