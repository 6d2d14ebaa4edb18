package stream

import "ledgerd/engine/ledger"

// audience are the subscribers of one level. The hub's lock guards it.
//
// What a block costs is its updates plus their matches: those who named keys are found
// through an index, and only those who want every block's frames are walked.
type audience struct {
	all      map[*subscriber]struct{}
	walked   map[*subscriber]struct{} // those given every emission, see subscriber.walked
	pubkeys  index
	programs index
}

// index leads from a key to those who named it.
type index map[ledger.Pubkey]map[*subscriber]struct{}

func (x index) add(k ledger.Pubkey, s *subscriber) {
	if x[k] == nil {
		x[k] = make(map[*subscriber]struct{}, 1)
	}
	x[k][s] = struct{}{}
}

func (x index) remove(k ledger.Pubkey, s *subscriber) {
	delete(x[k], s)
	if len(x[k]) == 0 {
		delete(x, k)
	}
}

func newAudience() audience {
	return audience{
		all: make(map[*subscriber]struct{}), walked: make(map[*subscriber]struct{}),
		pubkeys: make(index), programs: make(index),
	}
}

// add enters a subscriber with what it wants now.
func (a *audience) add(s *subscriber) {
	a.all[s] = struct{}{}
	a.walk(s)
	for k := range s.wants.pubkeys {
		a.pubkeys.add(k, s)
	}
	for k := range s.wants.programs {
		a.programs.add(k, s)
	}
}

// remove takes a subscriber out.
func (a *audience) remove(s *subscriber) {
	delete(a.all, s)
	delete(a.walked, s)
	a.silence(s)
}

// walk enters a subscriber among those who are walked or takes it out, whichever it now wants.
func (a *audience) walk(s *subscriber) {
	if s.walked() {
		a.walked[s] = struct{}{}
	} else {
		delete(a.walked, s)
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
		s.wants.pubkeys[k] = struct{}{}
		a.pubkeys.add(k, s)
	}
	for _, k := range programs {
		s.wants.programs[k] = struct{}{}
		a.programs.add(k, s)
	}
	a.walk(s)
}

// narrow takes names back; all takes back everything.
func (a *audience) narrow(s *subscriber, pubkeys, programs []ledger.Pubkey, all bool) {
	if all {
		s.wants.everything = false
		a.silence(s)
	}
	for _, k := range pubkeys {
		delete(s.wants.pubkeys, k)
		a.pubkeys.remove(k, s)
	}
	for _, k := range programs {
		delete(s.wants.programs, k)
		a.programs.remove(k, s)
	}
	a.walk(s)
}

// silence takes back all names.
func (a *audience) silence(s *subscriber) {
	for k := range s.wants.pubkeys {
		a.pubkeys.remove(k, s)
	}
	for k := range s.wants.programs {
		a.programs.remove(k, s)
	}
	clear(s.wants.pubkeys)
	clear(s.wants.programs)
}

// hear tells an emission to everybody who wants any of it.
func (a *audience) hear(e *emission) {
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
}

// hearUpdate tells one update to those who named its key or a program of it, once each.
func (a *audience) hearUpdate(e *emission, i int) {
	u := &e.updates[i]
	for s := range a.pubkeys[u.Account.Pubkey] {
		s.hearMatch(e, i)
	}
	if len(a.programs) == 0 {
		return
	}
	if u.Account.Known&ledger.FieldOwner != 0 {
		for s := range a.programs[u.Account.Owner] {
			s.hearMatch(e, i)
		}
	}
	if u.OwnerBefore.Known {
		for s := range a.programs[u.OwnerBefore.Value] {
			s.hearMatch(e, i)
		}
	}
}
