package stream

import (
	"errors"
	"time"

	"ledgerd/engine/ledger"
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

func (s *subscriber) subscribe(r *request, id messageID) error {
	more, to := r.names, s.wants
	if r.where != nil {
		if len(more[programs]) == 0 {
			return errNoPrograms
		}
		to.where = r.where
	}
	to.show(r.form)
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
		to.names, to.where, replaced = nameSet{}, nil, to.names
	}
	told := added[pubkeys]
	if to.form.shows(withData) && !s.wants.form.shows(withData) {
		told = to.names.lists()[pubkeys] // from now on
	}
	change := func() {
		s.audience().change(s, to, added, names{})
		s.wantLocked(told)
	}
	var err error
	if r.snapshot {
		err = s.subscribeWithSnapshot(more, change, to, id)
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

// wantLocked calls Config.Want with accounts that the subscriber has named, if its updates contain data.
func (s *subscriber) wantLocked(keys []ledger.Pubkey) {
	if s.showsData() {
		s.hub.config.Want(keys...)
	}
}

// subscribeNow subscribes to what comes from here on.
func (s *subscriber) subscribeNow(change func(), id messageID) {
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	change()
	s.put(s.subscribed(id, s.hub.positionLocked(s.level)))
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
	if to.names.len(programs) == 0 {
		to.where = nil
	}
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	withWallets := s.wants.names.len(wallets)+len(r.names[wallets]) > 0
	s.audience().change(s, to, names{}, removed)
	s.answer(`{"type":"unsubscribed","id":%s,%s}`, id, s.wants.names.counts(withWallets))
	return nil
}

func (s *subscriber) pong(id messageID) {
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	at := s.hub.positionLocked(s.level)
	s.answer(`{"type":"pong","id":%s,"slot":%d,"seq":%d,"timestamp":"%s"}`, id, at.slot, at.seq, timestamp(time.Now()))
}

func (s *subscriber) resume(r *request, id messageID) error {
	if !r.from.Known {
		return errFromSeq
	}
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	s.resumeLocked(r.from.Value, id)
	return nil
}

// resumeLocked resumes after the last seq that a client has seen: it delivers what is held after that seq
// and wanted, or waits for a seq that this node has not reached.
func (s *subscriber) resumeLocked(from ledger.Seq, id messageID) {
	newest := s.hub.positionLocked(s.level).seq
	s.await(nil)
	if oldest := s.hub.oldestLocked(s.level, newest); from < oldest {
		s.answerResync(id, oldest, newest)
		return
	}
	missed := s.hub.missedLocked(s.level, from, newest, new(s.wants))
	if !s.pay(missed.cost()) {
		return
	}
	s.answer(`{"type":"resumed","id":%s,"from_seq":%d}`, id, from)
	s.replayLocked(s.after(), missed, newest)
	if from > newest {
		s.await(&awaits{from, time.Now().Add(resumeTimeout), id})
	}
}

// answerResync says that the client has to start over.
func (s *subscriber) answerResync(id messageID, oldest, newest ledger.Seq) {
	s.hub.meters.resumes["refused"].Inc()
	s.answer(`{"type":"resync_required","id":%s,"oldest_seq":%d,"newest_seq":%d}`, id, oldest, newest)
}

// subscribed returns the answer that says how many names are subscribed, and from which slot and seq on.
func (s *subscriber) subscribed(id messageID, at standing) *packet {
	counts := s.wants.names.counts(s.wants.names.len(wallets) > 0)
	return message(`{"type":"subscribed","id":%s,%s,"slot":%d,"seq":%d}`, id, counts, at.slot, at.seq)
}
