package stream

import (
	"time"

	"github.com/fasthttp/websocket"

	"ledgerd/httpd/stream/frame"
)

// timers say when a writer is to wake by itself. A connection that needs no heartbeat wakes for
// its pings alone: a tick a second for each of 15,000 idle connections would cost a tenth of a core.
//
// The times are counted from when the hub was made.
type timers struct {
	tickAt time.Duration // the next heartbeat; 0 while there are none
	pinged time.Duration
	due    time.Duration // what comes first of all that is due
	alarm  *time.Timer   // wakes the writer then
}

// runDue does what is due, and finds out when something is next.
func (s *subscriber) runDue(now time.Duration) error {
	t, interval := &s.timers, s.hub.config.HeartbeatInterval
	switch on := s.ticks.Load(); {
	case !on:
		t.tickAt = 0
	case t.tickAt == 0:
		t.tickAt = now + interval
	case now >= t.tickAt:
		t.tickAt += (now-t.tickAt)/interval*interval + interval // those that were missed are left out
		s.tick(time.Now())
	}
	if err := s.ping(now); err != nil {
		return err
	}
	t.due = t.pinged + s.hub.config.PingInterval
	if t.tickAt != 0 {
		t.due = min(t.due, t.tickAt)
	}
	return nil
}

// ping writes a ping when it is time for one.
func (s *subscriber) ping(now time.Duration) error {
	if now-s.timers.pinged < s.hub.config.PingInterval {
		return nil
	}
	s.timers.pinged = now
	return s.writeOnce(batch{frame.AppendControl(nil, websocket.PingMessage, nil), tally{frames: 1}})
}

// scheduleTicks says whether there is something to do every heartbeat: to send one, or to look
// whether what a client waits for has come. The hub's lock is held.
func (s *subscriber) scheduleTicks() {
	on := s.wants.form.marksSlots() || s.resumed != 0
	if s.ticks.Swap(on) != on && on {
		s.outbox.wake()
	}
}

// tick is called once a heartbeat.
func (s *subscriber) tick(now time.Time) {
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	slot, seq := s.hub.positionLocked(s.level)
	switch {
	case s.holding, s.resumed == 0: // what led to the position is delivered first
	case seq >= s.resumed:
		s.waitFor(0)
	case now.After(s.resumedBy):
		s.waitFor(0)
		s.answerResync(s.resumeID, s.hub.oldestLocked(s.level, seq), seq)
	}
	if s.holding {
		slot, seq = s.heldSlot, s.heldSeq
	}
	if s.wants.form.marksSlots() {
		s.put(single(appendHeartbeat(nil, slot, seq)))
	}
}
