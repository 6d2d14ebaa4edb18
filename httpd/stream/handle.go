package stream

import (
	"errors"
	"fmt"
	"time"

	"ledgerd/engine/ledger"
	"ledgerd/httpd/stream/frame"
)

// handle answers one message of the client. After an error nothing has changed.
func (s *subscriber) handle(text []byte) {
	if !s.pay(messageCost(len(text))) {
		return
	}
	r, id, err := parseRequest(text)
	if err == nil {
		switch r.kind {
		case "subscribe":
			err = s.subscribe(&r, id)
		case "unsubscribe":
			err = s.unsubscribe(&r, id)
		case "resume":
			err = s.resume(&r, id)
		case "ping":
			s.pong(id)
		}
	}
	var end *closing
	switch {
	case errors.As(err, &end):
		s.outbox.close(*end)
	case err != nil:
		s.hub.mu.Lock()
		defer s.hub.mu.Unlock()
		s.answer(`{"type":"error","id":%s,"error":"Invalid request parameters","details":"%s"}`, id, err)
	}
}

// pay charges the client before something is done. A client in debt is disconnected instead. When a fifth of what it may spend is left it is
// told, if its form has such frames: once, and again only when half of it had come back in between.
func (s *subscriber) pay(cost time.Duration) bool {
	if !s.seat.work.spend(cost) {
		s.outbox.close(endRate)
		return false
	}
	switch left := s.seat.work.left(); {
	case left > workBurst/2:
		s.warned = false
	case left <= workBurst/5 && !s.warned && s.wants.form.marksSlots():
		s.warned = true
		s.outbox.put(nil, single(frame.AppendText(nil, func(b []byte) []byte {
			return fmt.Appendf(b, `{"type":"warning","reason":"work budget","remaining":%d}`, left.Milliseconds())
		})))
	}
	return true
}

func (s *subscriber) subscribe(r *request, id messageID) error {
	more, to := r.names, s.wants
	to.show(r.extended, r.tokens)
	var added names
	if to.names, added = to.names.plus(more); to.names.count() > maxNames {
		return &endNames
	}
	if !s.takeNames(added.count()) {
		return &endMemory
	}
	// Names replace everything; no names at all mean everything, and replace them.
	replaced := nameSet{}
	if to.everything = more.count() == 0; to.everything {
		to.names, replaced = nameSet{}, to.names
	}
	change := func() { s.audience().change(s, to, added, names{}) }
	var err error
	if r.snapshot {
		err = s.subscribeWithSnapshot(more, change, to.form, id)
	} else {
		s.subscribeNow(change, id)
	}
	if err != nil {
		s.giveNames(added.count())
		return err
	}
	s.unlink(replaced)
	return nil
}

// subscribeNow subscribes to what comes from here on.
func (s *subscriber) subscribeNow(change func(), id messageID) {
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	change()
	slot, seq := s.hub.positionLocked(s.level)
	s.answerSubscribed(id, slot, seq)
}

func (s *subscriber) unsubscribe(r *request, id messageID) error {
	switch {
	case !r.all && r.names.count() == 0:
		return errNothing
	case !r.all && s.wants.everything:
		return errEverything
	}
	to, removed := s.wants, names{}
	if r.all {
		s.unlink(to.names)
		to.everything, to.names = false, nameSet{}
	} else {
		to.names, removed = to.names.minus(r.names)
		defer s.giveNames(removed.count())
	}
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	withWallets := s.wants.names.len(wallets) > 0 || len(r.names[wallets]) > 0
	s.audience().change(s, to, names{}, removed)
	s.answer(`{"type":"unsubscribed","id":%s,%s}`, id, s.wants.names.counts(withWallets))
	return nil
}

func (s *subscriber) pong(id messageID) {
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	slot, seq := s.hub.positionLocked(s.level)
	s.answer(`{"type":"pong","id":%s,"slot":%d,"seq":%d,"timestamp":"%s"}`, id, slot, seq, timestamp(time.Now()))
}

func (s *subscriber) resume(r *request, id messageID) error {
	if !r.from.Known {
		return errFromSeq
	}
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	s.resumeLocked(r.from.Value, s.wants, id)
	return nil
}

// resumeLocked goes on after the last seq a client has seen: what is held after it is delivered
// as wanted, and a seq that is still to come here is waited for.
func (s *subscriber) resumeLocked(from ledger.Seq, wanted wants, id messageID) {
	_, newest := s.hub.positionLocked(s.level)
	s.waitFor(0)
	if oldest := s.hub.oldestLocked(s.level, newest); from < oldest {
		s.answerResync(id, oldest, newest)
		return
	}
	missed := s.hub.missedLocked(s.level, from, newest, wanted)
	if !s.pay(missed.cost()) {
		return
	}
	s.answer(`{"type":"resumed","id":%s,"from_seq":%d}`, id, from)
	source := "memory"
	switch {
	case missed.past != nil:
		source = "log"
	case from > newest:
		source = "ahead"
	}
	s.hub.meters.resumes[source].Add(1)
	if missed.past != nil || len(missed.emissions) > 0 {
		s.putBacklog(missed)
	}
	if from > newest {
		s.resumedBy, s.resumeID = time.Now().Add(s.hub.config.ResumeTimeout), id
		s.waitFor(from)
	}
}

// answerResync says that the client has to start over.
func (s *subscriber) answerResync(id messageID, oldest, newest ledger.Seq) {
	s.hub.meters.resumes["refused"].Add(1)
	s.answer(`{"type":"resync_required","id":%s,"oldest_seq":%d,"newest_seq":%d}`, id, oldest, newest)
}

// answerSubscribed says how many names are subscribed and as of where.
func (s *subscriber) answerSubscribed(id messageID, slot ledger.Slot, seq ledger.Seq) {
	counts := s.wants.names.counts(s.wants.names.len(wallets) > 0)
	s.answer(`{"type":"subscribed","id":%s,%s,"slot":%d,"seq":%d}`, id, counts, slot, seq)
}
