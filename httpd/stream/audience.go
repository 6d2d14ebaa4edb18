package stream

import (
	"slices"

	"ledgerd/engine/ledger"
)

// set holds subscribers, or topics too.
type set[T comparable] map[T]struct{}

func (t set[T]) put(one T, in bool) {
	if in {
		t[one] = struct{}{}
	} else {
		delete(t, one)
	}
}

// audience are the subscribers and the topics of one level. The hub's lock guards it.
//
// What a block costs is its updates plus their matches: subscribers and topics of names are found through
// an index, subscribers of everything follow a ring, and only the few that receive every
// block in their own way are examined one by one.
type audience struct {
	walked  set[*subscriber] // see walking
	indexes [nameKinds]index[ledger.Pubkey, recipient]
	matched []*subscriber // received a match, and are to be woken
	topics  topics        // of what has no name
	want    func(keys ...ledger.Pubkey)

	ringBytes int
	rings     map[form]*ring // that have users
}

// recipient is what named an account, a program or a wallet: a subscriber or a topic.
type recipient interface {
	// deliverMatch is called for every update that has one of its names, for each of these.
	deliverMatch(e *emission, i int, n name)
	// showsData reports whether its updates contain data.
	showsData() bool
}

func newAudience(config *Config) audience {
	a := audience{ringBytes: config.RingBytes, want: config.Want, walked: make(set[*subscriber]), rings: make(map[form]*ring)}
	a.topics.signatures = make(index[ledger.Signature, *topic])
	for kind := range a.indexes {
		a.indexes[kind] = make(index[ledger.Pubkey, recipient])
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

// change gives a subscriber other wants. added and removed are the names in which they differ, at most as many as a message holds:
// only these are looked up, because the hub's lock is held and clients may change often. unlink removes all names.
func (a *audience) change(s *subscriber, to wants, added, removed names) {
	for kind, x := range a.indexes {
		x.add(added[kind], s)
		x.remove(removed[kind], s)
	}
	s.wants = to
	a.classify(s)
}

// classify enters a subscriber where it now belongs: among those that are examined for each
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
		s.deliverPart(e, e.ending())
		// The seq that the client has seen has come. The subscriber follows its ring at once: after a failover many wait, and each would
		// get a packet of its own for every update.
		if s.awaits != nil && e.lastSeq >= s.awaits.seq {
			s.await(nil)
		}
	}
	e.delivered()
}

// deliverUpdates gives updates to the recipients that named their keys. It calls Config.Want for accounts whose data an update leaves
// unknown, if one of these recipients shows data.
func (a *audience) deliverUpdates(e *emission) {
	if !slices.ContainsFunc(a.indexes[:], func(x index[ledger.Pubkey, recipient]) bool { return len(x) > 0 }) {
		return
	}
	var room [maxNamesOf]name
	for i := range e.updates {
		u := &e.updates[i].Account
		for _, n := range namesOf(room[:0], &e.updates[i]) {
			all := a.indexes[n.kind].at(n.key)
			for _, r := range all {
				r.deliverMatch(e, i, n)
			}
			if n.kind == pubkeys && u.Exists() && u.Known&ledger.FieldData == 0 && slices.ContainsFunc(all, recipient.showsData) {
				a.want(u.Pubkey)
			}
		}
	}
}
