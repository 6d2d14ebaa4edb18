package stream

import (
	"slices"

	"ledgerd/engine/ledger"
)

// set holds subscribers.
type set map[*subscriber]struct{}

func (t set) put(s *subscriber, in bool) {
	if in {
		t[s] = struct{}{}
	} else {
		delete(t, s)
	}
}

// audience are the subscribers of one level. The hub's lock guards it.
//
// What a block costs is its updates plus their matches: subscribers of names are found through
// an index, subscribers of everything follow a ring, and only the few that receive every
// block in their own way are looked at one by one.
type audience struct {
	walked  set // see walking
	indexes [nameKinds]index[ledger.Pubkey, *subscriber]
	topics  topics
	matched []*subscriber // received a match, and are to be woken

	ringBytes int
	rings     map[form]*ring // that have users
}

func newAudience(ringBytes int) audience {
	a := audience{ringBytes: ringBytes, walked: make(set), rings: make(map[form]*ring)}
	a.topics.signatures = make(index[ledger.Signature, *topic])
	for kind := range a.indexes {
		a.indexes[kind], a.topics.named[kind] = make(index[ledger.Pubkey, *subscriber]), make(index[ledger.Pubkey, *topic])
	}
	return a
}

// add enters a subscriber with what it wants now.
func (a *audience) add(s *subscriber) {
	a.change(s, s.wants, s.wants.names.lists(), names{})
}

// remove takes a subscriber out that no name leads to any more.
func (a *audience) remove(s *subscriber) {
	s.held, s.awaits = nil, nil
	a.change(s, wants{}, names{}, names{})
	for f, r := range a.rings {
		if r.users.put(s, false); len(r.users) == 0 {
			delete(a.rings, f)
		}
	}
}

// change gives a subscriber other wants. added and removed are the names in which they differ, as many as a message holds:
// only those are looked up, because the hub's lock is held and clients may change often. All names are removed by unlink.
func (a *audience) change(s *subscriber, to wants, added, removed names) {
	for kind, x := range a.indexes {
		x.add(added[kind], s)
		x.remove(removed[kind], s)
	}
	s.wants = to
	a.classify(s)
}

// classify enters a subscriber where it now belongs: among those that are looked at for each
// emission, among the followers of a ring, or neither.
func (a *audience) classify(s *subscriber) {
	phase := s.phase()
	a.walked.put(s, phase == walking)
	s.hub.tokens.put(s, s.wants.form.shows(withTokens))
	if phase == following {
		s.follow(a.ring(s))
	} else {
		s.follow(nil)
	}
	s.scheduleTicks(s.wants.form.marksSlots() || s.awaits != nil)
}

// ring returns the ring of what a subscriber wants. It stays as long as the connection does,
// also when that goes on to something else while its writer still reads the ring: so there never
// are two of a kind.
func (a *audience) ring(s *subscriber) *ring {
	f := s.wants.form
	if a.rings[f] == nil {
		a.rings[f] = newRing(f, a.ringBytes, s.hub.reachedLocked(s.level))
	}
	a.rings[f].users.put(s, true)
	return a.rings[f]
}

// wake wakes the writers that follow a ring, and those of the subscribers of names that received
// something: once each, however many updates that were.
func (a *audience) wake() {
	for _, s := range a.matched {
		s.last = nil
		s.outbox.wake()
	}
	clear(a.matched)
	a.matched = a.matched[:0]
	for _, r := range a.rings {
		r.wake()
	}
}

// deliver gives an emission to all subscribers that want any of it.
func (a *audience) deliver(e *emission) {
	for _, r := range a.rings {
		r.append(e)
	}
	for s := range a.walked {
		s.deliverOpening(e)
	}
	a.deliverUpdates(e)
	for s := range a.walked {
		s.deliverEnding(e)
	}
	e.delivered()
}

// deliverUpdates gives updates to those that named their keys, each once.
func (a *audience) deliverUpdates(e *emission) {
	if !slices.ContainsFunc(a.indexes[:], func(x index[ledger.Pubkey, *subscriber]) bool { return len(x) > 0 }) {
		return
	}
	var room [maxNamesOf]name
	for i := range e.updates {
		for _, n := range namesOf(room[:0], &e.updates[i]) {
			for _, s := range a.indexes[n.kind].at(n.key) {
				if s.wants.takes(&e.updates[i], n) {
					s.deliverMatch(e, i)
				}
			}
		}
	}
}

// wantData wants the accounts that an emission leaves with unknown data and that somebody named who is told data.
func (a *audience) wantData(e *emission, want func(keys ...ledger.Pubkey)) {
	if len(a.topics.named[pubkeys])+len(a.indexes[pubkeys]) == 0 {
		return
	}
	shown := func(s *subscriber) bool { return s.wants.form.shows(withData) }
	for i := range e.updates {
		u := &e.updates[i].Account
		if u.Exists() && u.Known&ledger.FieldData == 0 &&
			(len(a.topics.named[pubkeys].at(&u.Pubkey)) > 0 || slices.ContainsFunc(a.indexes[pubkeys].at(&u.Pubkey), shown)) {
			want(u.Pubkey)
		}
	}
}
