package geyser

import (
	"time"
)

const (
	idleTimeout  = 5 * time.Second  // no message for so long ends the session
	blockTimeout = 15 * time.Second // no whole block for so long does so too
)

// watch says when a connection shows too little.
type watch struct {
	received, shown uint64
	receivedAt      time.Time
	progress        uint64
	progressAt      time.Time
}

// standstill is how many times blockTimeout a node may show nothing at all and answer pings: its cluster may stand still.
const standstill = 4

// check returns why the session has to end, nil if it has not.
func (w *watch) check(now time.Time, conn *connection, progress uint64) error {
	if n := conn.received.Load(); n != w.received || !conn.waits.Load() {
		w.received, w.receivedAt = n, now
	}
	if progress != w.progress {
		w.progress, w.progressAt, w.shown = progress, now, conn.shown.Load()
	}
	patience := blockTimeout
	if w.shown == conn.shown.Load() {
		patience *= standstill
	}
	switch idle := now.Sub(w.receivedAt); {
	case idle >= idleTimeout:
		return errStalled
	case idle >= idleTimeout/2:
		token(conn.pings) // a node whose cluster stands still shows nothing, and answers
	}
	if now.Sub(w.progressAt) >= patience {
		return errNoBlock
	}
	return nil
}
