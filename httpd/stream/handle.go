package stream

import (
	"strconv"
	"time"

	"ledgerd/engine/ledger"
)

// handle answers one message of the client. After an error nothing has changed.
func (s *subscriber) handle(text []byte) {
	r, id, err := parseRequest(text)
	if err == nil {
		switch r.Type {
		case "subscribe":
			err = s.subscribe(&r, id)
		case "unsubscribe":
			err = s.unsubscribe(&r, id)
		case "resume":
			err = s.resume(&r, id)
		case "ping":
			s.pong(id)
		default:
			err = errNotMessage
		}
	}
	if err != nil {
		s.hub.mu.Lock()
		defer s.hub.mu.Unlock()
		s.say(func(b []byte) []byte { return appendError(b, id, err.Error()) })
	}
}

// audience are those the subscriber is one of.
func (s *subscriber) audience() *audience { return &s.hub.levels[s.level] }

func (s *subscriber) subscribe(r *request, id messageID) error {
	pubkeys, programs, err := r.keys()
	if err != nil {
		return err
	}
	if r.Snapshot {
		return s.subscribeWithSnapshot(pubkeys, programs, r.Extended, id)
	}
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	if !s.mayWidenLocked(pubkeys, programs) {
		return nil
	}
	s.audience().widen(s, pubkeys, programs, r.Extended)
	slot, seq := s.hub.positionLocked(s.level)
	s.saySubscribed(id, slot, seq)
	return nil
}

// mayWidenLocked reports whether the subscriber may want more names. Too many end the connection.
func (s *subscriber) mayWidenLocked(pubkeys, programs []ledger.Pubkey) bool {
	if s.wants.keysWith(pubkeys, programs) > maxKeys {
		s.outbox.close(endKeys)
		return false
	}
	return true
}

func (s *subscriber) unsubscribe(r *request, id messageID) error {
	pubkeys, programs, err := r.keys()
	switch {
	case err != nil:
		return err
	case !r.All && len(pubkeys)+len(programs) == 0:
		return errNothing
	}
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	if s.wants.everything && !r.All {
		return errEverything
	}
	s.audience().narrow(s, pubkeys, programs, r.All)
	s.say(func(b []byte) []byte {
		return append(appendCounts(appendReply(b, "unsubscribed", id), &s.wants), '}')
	})
	return nil
}

func (s *subscriber) pong(id messageID) {
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	slot, seq := s.hub.positionLocked(s.level)
	s.say(func(b []byte) []byte {
		b = appendPosition(append(appendReply(b, "pong", id), ','), slot, seq)
		b = append(b, `,"timestamp":`...)
		return append(appendTime(b, ledger.Some(time.Now().Unix())), '}')
	})
}

func (s *subscriber) resume(r *request, id messageID) error {
	from, ok := parseSeq(r.FromSeq)
	if !ok {
		return errFromSeq
	}
	wanted := s.wants.clone() // nobody else changes them
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	s.resumeLocked(from, wanted, id)
	return nil
}

// resumeLocked goes on behind the last seq a client has seen: what is held after it is told
// to who wants so much, and a seq that is still to come here is waited for.
func (s *subscriber) resumeLocked(from ledger.Seq, wanted wants, id messageID) {
	_, newest := s.hub.positionLocked(s.level)
	held := &s.hub.recent[s.level]
	s.waitFor(0)
	if oldest := s.hub.oldestLocked(s.level, newest); from < oldest {
		s.sayResync(id, oldest, newest)
		return
	}
	s.say(func(b []byte) []byte {
		b = append(appendReply(b, "resumed", id), `,"from_seq":`...)
		return append(strconv.AppendUint(b, uint64(from), 10), '}')
	})
	b := &backlog{emissions: held.after(from), seen: from, wants: wanted, past: s.hub.pastLocked(s.level, from, newest)}
	switch meters := s.hub.meters; {
	case b.past != nil:
		meters.resumes[originLog].Inc()
	case from > newest:
		meters.resumes[originAhead].Inc()
	default:
		meters.resumes[originMemory].Inc()
	}
	if len(b.emissions) > 0 {
		b.newest = b.emissions[len(b.emissions)-1].version
	}
	if b.past != nil || len(b.emissions) > 0 {
		s.budget.charge(b.tokens())
		s.put(piece{missed: b})
	}
	if from > newest {
		s.resumedBy, s.resumeID = time.Now().Add(s.hub.config.ResumeTimeout), id
		s.waitFor(from)
	}
}

// sayResync says that the client has to start over.
func (s *subscriber) sayResync(id messageID, oldest, newest ledger.Seq) {
	s.hub.meters.resumes[originRefused].Inc()
	s.say(func(b []byte) []byte { return appendResync(b, id, oldest, newest) })
}

// saySubscribed answers with how many names are subscribed and as of where.
func (s *subscriber) saySubscribed(id messageID, slot ledger.Slot, seq ledger.Seq) {
	s.say(func(b []byte) []byte {
		b = appendCounts(appendReply(b, "subscribed", id), &s.wants)
		return append(appendPosition(append(b, ','), slot, seq), '}')
	})
}
