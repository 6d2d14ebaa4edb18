package stream

import "ledgerd/engine/ledger"

// audience are the subscribers of one level. The hub's lock guards it.
//
// What a block costs is its updates plus their matches: those who named keys are found
// through an index, those who want everything follow a ring, and only those few who are told
// of every block in their own way are walked.
type audience struct {
	all      map[*subscriber]struct{}
	walked   map[*subscriber]struct{} // those given every emission, see subscriber.walked
	pubkeys  index
	programs index
	matched  []*subscriber // were told of a match, and are to be woken

	ringBytes int
	rings     [forms]*ring // nil while nobody follows it
	digest    *digest      // the last one made, as long as it may be used again
}

func newAudience(ringBytes int) audience {
	return audience{
		ringBytes: ringBytes,
		all:       make(map[*subscriber]struct{}), walked: make(map[*subscriber]struct{}),
		pubkeys: make(index), programs: make(index),
	}
}

// add enters a subscriber with what it wants now.
func (a *audience) add(s *subscriber) {
	a.all[s] = struct{}{}
	a.place(s)
	for k := range s.wants.pubkeys.all() {
		a.pubkeys.add(k, s)
	}
	for k := range s.wants.programs.all() {
		a.programs.add(k, s)
	}
}

// remove takes a subscriber out.
func (a *audience) remove(s *subscriber) {
	delete(a.all, s)
	delete(a.walked, s)
	a.silence(s)
	s.follow(nil)
	s.count(kindNone)
	for f, used := range s.used {
		if !used {
			continue
		}
		if a.rings[f].users--; a.rings[f].users == 0 {
			a.rings[f], a.digest = nil, nil
		}
	}
}

// place enters a subscriber where it now belongs: among those who are walked, among the
// followers of a ring, or neither.
func (a *audience) place(s *subscriber) {
	if s.walked() {
		a.walked[s] = struct{}{}
	} else {
		delete(a.walked, s)
	}
	if s.wants.everything && !s.walked() {
		s.follow(a.ring(s))
	} else {
		s.follow(nil)
	}
	s.keepBeat()
	s.count(s.wants.kind())
}

// ring returns the ring of what a subscriber wants. It stays as long as the connection does,
// also when that goes on to something else and its writer is still behind: so there never
// are two of a kind.
func (a *audience) ring(s *subscriber) *ring {
	f := s.wants.form()
	if a.rings[f] == nil {
		a.rings[f] = newRing(f, a.ringBytes, s.hub.toldLocked(s.level))
	}
	if !s.used[f] {
		s.used[f] = true
		a.rings[f].users++
	}
	return a.rings[f]
}

// wake calls the writers that follow a ring, and of those who named what was published: once
// each, however many updates that were.
func (a *audience) wake() {
	for _, s := range a.matched {
		s.woken, s.matched = false, match{} // the block is not kept for it
		s.outbox.wakeUp()
	}
	clear(a.matched)
	a.matched = a.matched[:0]
	for _, r := range a.rings {
		if r != nil {
			r.wake()
		}
	}
}

// widen adds names to what a subscriber wants. They replace "everything"; no names at all
// mean everything. What it costs grows with the names given, not with those it had: the
// lock is held, and clients may ask for it often.
func (a *audience) widen(s *subscriber, pubkeys, programs []ledger.Pubkey, extended bool) {
	s.wants.extended = s.wants.extended || extended
	if s.wants.everything = len(pubkeys)+len(programs) == 0; s.wants.everything {
		a.silence(s)
	}
	for _, k := range pubkeys {
		s.wants.pubkeys.add(k)
		a.pubkeys.add(k, s)
	}
	for _, k := range programs {
		s.wants.programs.add(k)
		a.programs.add(k, s)
	}
	a.place(s)
}

// narrow takes names back; all takes back everything.
func (a *audience) narrow(s *subscriber, pubkeys, programs []ledger.Pubkey, all bool) {
	if all {
		s.wants.everything = false
		a.silence(s)
	}
	for _, k := range pubkeys {
		s.wants.pubkeys.remove(k)
		a.pubkeys.remove(k, s)
	}
	for _, k := range programs {
		s.wants.programs.remove(k)
		a.programs.remove(k, s)
	}
	a.place(s)
}

// silence takes back all names.
func (a *audience) silence(s *subscriber) {
	for k := range s.wants.pubkeys.all() {
		a.pubkeys.remove(k, s)
	}
	for k := range s.wants.programs.all() {
		a.programs.remove(k, s)
	}
	s.wants.pubkeys.clear()
	s.wants.programs.clear()
}

// hear tells an emission to everybody who wants any of it.
func (a *audience) hear(e *emission) {
	for _, r := range a.rings {
		if r != nil {
			r.tell(e)
		}
	}
	a.forgetDigest()
	for s := range a.walked {
		s.hearOpening(e)
	}
	if len(a.pubkeys)+len(a.programs) > 0 {
		for i := range e.updates {
			a.hearUpdate(e, i)
		}
	}
	for s := range a.walked {
		s.hearEnding(e)
	}
	e.last, e.scratch = [forms]*lastFrame{}, nil // whoever hears it later is told by itself
}

// hearUpdate tells one update to those who named its key or a program of it, once each.
func (a *audience) hearUpdate(e *emission, i int) {
	u := &e.updates[i]
	a.pubkeys.hearMatch(u.Account.Pubkey, e, i)
	if len(a.programs) == 0 {
		return
	}
	if u.Account.Known&ledger.FieldOwner != 0 {
		a.programs.hearMatch(u.Account.Owner, e, i)
	}
	if u.OwnerBefore.Known {
		a.programs.hearMatch(u.OwnerBefore.Value, e, i)
	}
}
