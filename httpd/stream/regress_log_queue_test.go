package stream

import (
	"context"
	"sync/atomic"
	"testing"

	"ledgerd/engine/ledger"
)

// slowHistory counts how often it is read, and waits before it answers.
type slowHistory struct {
	*fakeHistory
	reads atomic.Int32
	gate  chan struct{}
}

func (f *slowHistory) Publications(ctx context.Context, after ledger.Seq, visit func(*ledger.Publication) error) error {
	f.reads.Add(1)
	<-f.gate
	return f.fakeHistory.Publications(ctx, after, visit)
}

// Those that wait for their turn to read the log do not read it any more once they are about to
// end: a stop would wait for all of them, one after the other.
func TestTheLogIsNotReadForConnectionsThatEnd(t *testing.T) {
	log := &slowHistory{fakeHistory: &fakeHistory{}, gate: make(chan struct{})}
	n := serve(t, func(c *Config) { c.History, c.RecentBytes = log, 1 })
	n.script.history = log.fakeHistory
	for slot := range ledger.Slot(5) {
		n.script.block(slot+1, account(1, ledger.Lamports(slot+1), programA))
	}
	var clients []*client
	for range 10 {
		c := n.dial("?resume_from=1")
		c.expect(resumed("null", 1))
		clients = append(clients, c)
	}
	eventually(t, "the log is read", func() bool { return log.reads.Load() == 1 })
	stopped := make(chan error, 1)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		stopped <- n.hub.Shutdown(ctx)
	}()
	eventually(t, "all are about to end", func() bool {
		n.hub.mu.Lock()
		defer n.hub.mu.Unlock()
		for s := range n.hub.levels[ledger.Processed].all {
			if !s.outbox.isClosing() {
				return false
			}
		}
		return true
	})
	close(log.gate)
	for _, c := range clients {
		if _, code, _ := c.ends(); code != closeGoingAway {
			t.Errorf("ended with %d, want %d", code, closeGoingAway)
		}
	}
	if err := <-stopped; err != nil {
		t.Errorf("Shutdown: %v", err)
	}
	if got := log.reads.Load(); got != 1 {
		t.Errorf("the log was read %d times, want once", got)
	}
}
