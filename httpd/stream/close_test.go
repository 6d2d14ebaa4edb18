package stream

import (
	"context"
	"testing"
	"time"

	"ledgerd/engine/ledger/ledgertest"
)

// F48: a handshake whose answer nobody reads does not hold up a stop: the server, which has the connection still, ends it afterwards.
func TestShutdownDoesNotWaitForAnUnreadHandshake(t *testing.T) {
	inMemory(t, nil, func(n *node) {
		s := joined(n.hub, request{narrow: true})
		ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
		defer cancel()
		since := time.Now()
		ledgertest.ErrorIs(n, n.hub.Shutdown(ctx), context.DeadlineExceeded, "Shutdown")
		n.elapsed("Shutdown returned", since, 300*time.Millisecond+cutTime, 0)
		s.depart() // as the server says of a connection that ended so
	})
}
