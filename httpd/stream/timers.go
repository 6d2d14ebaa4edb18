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
func (c *connection) runDue(now time.Duration) error {
	t := &c.timers
	switch on := c.ticks.Load(); {
	case !on:
		t.tickAt = 0
	case t.tickAt == 0:
		t.tickAt = now + heartbeatInterval
	case now >= t.tickAt:
		t.tickAt += (now-t.tickAt)/heartbeatInterval*heartbeatInterval + heartbeatInterval // those that were missed are left out
		c.speaker.tick(time.Now())
	}
	if err := c.ping(now); err != nil {
		return err
	}
	t.due = t.pinged + pingInterval
	if t.tickAt != 0 {
		t.due = min(t.due, t.tickAt)
	}
	return nil
}

// ping writes a ping when it is time for one.
func (c *connection) ping(now time.Duration) error {
	if now-c.timers.pinged < pingInterval {
		return nil
	}
	c.timers.pinged = now
	return c.writeOnce(batch{frame.AppendControl(nil, websocket.PingMessage, nil), tally{frames: 1}})
}

// scheduleTicks says whether there is something to do every heartbeat: to send one, or to look
// whether what a client waits for has come. The hub's lock is held.
func (c *connection) scheduleTicks(on bool) {
	if c.ticks.Swap(on) != on && on {
		c.outbox.wake()
	}
}
