package stream

import "time"

// pulse says when a writer is to wake by itself. Who has asked for nothing that needs a
// heartbeat wakes for its pings alone: a tick a second for each of 15,000 idle connections
// would cost a tenth of a core.
//
// Its times are counted from when it began.
type pulse struct {
	began  time.Time
	beatAt time.Duration // the next heartbeat, at a whole interval; 0 while there are none
	pinged time.Duration
	due    time.Duration // what comes first of all that is due

	alarm *time.Timer
	set   time.Duration // what the alarm is set to
}

func (p *pulse) end() {
	if p.alarm != nil {
		p.alarm.Stop()
	}
}

// arm has the writer called when something is due.
func (p *pulse) arm(wake func()) {
	if p.set == p.due {
		return
	}
	p.set = p.due
	left := p.due - time.Since(p.began)
	if p.alarm == nil {
		p.alarm = time.AfterFunc(left, wake)
		return
	}
	p.alarm.Reset(left)
}

// beat does what is due, and finds out when something is next.
func (s *subscriber) beat(now time.Time) error {
	p, interval := &s.pulse, s.hub.config.HeartbeatInterval
	at := now.Sub(p.began)
	switch on := s.beats.Load(); {
	case !on:
		p.beatAt = 0
	case p.beatAt == 0:
		p.beatAt = (at/interval + 1) * interval
	case at >= p.beatAt:
		p.beatAt = (at/interval + 1) * interval
		s.tick(now)
	}
	if err := s.ping(now); err != nil {
		return err
	}
	p.due = p.pinged + s.hub.config.PingInterval
	if p.beatAt != 0 {
		p.due = min(p.due, p.beatAt)
	}
	return nil
}

// ping writes a ping when it is time for one.
func (s *subscriber) ping(now time.Time) error {
	at := now.Sub(s.pulse.began)
	if at-s.pulse.pinged < s.hub.config.PingInterval {
		return nil
	}
	s.pulse.pinged = at
	return s.writeOnce(one(appendControl(nil, opPing, nil), 0))
}

// keepBeat says whether there is something to do every heartbeat: to tell one, or to look
// whether what a client waits for has come. The hub's lock is held.
func (s *subscriber) keepBeat() {
	on := s.wants.extended || s.resumed != 0
	if s.beats.Swap(on) != on && on {
		s.outbox.wakeUp()
	}
}

// tick is called once a heartbeat.
func (s *subscriber) tick(now time.Time) {
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	slot, seq := s.hub.positionLocked(s.level)
	switch {
	case s.holding, s.resumed == 0: // it will hear what led to the position
	case seq >= s.resumed:
		s.waitFor(0)
	case now.After(s.resumedBy):
		s.waitFor(0)
		s.sayResync(s.resumeID, s.hub.oldestLocked(s.level, seq), seq)
	}
	if s.wants.extended && !s.holding {
		s.say(func(b []byte) []byte { return appendHeartbeat(b, slot, seq, now) })
	}
}
