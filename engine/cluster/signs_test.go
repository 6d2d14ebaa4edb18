package cluster

import (
	"fmt"
	"testing"
	"time"

	"ledgerd/engine/ledger/bubbletest"
	"ledgerd/engine/ledger/ledgertest"
)

// F19: TestWhoClaims has a node that holds the whole log hear of other nodes, and asks it each second whether it claims the log. What the clock of
// a writer says does not count.
func TestWhoClaims(t *testing.T) {
	const never = time.Hour
	type row struct {
		first, again func(c *Cluster) // what happens at once, and each second; nil: nothing
		want         time.Duration    // from when on it claims
	}
	heartbeat := func(epoch int, role string) func(c *Cluster) {
		return func(c *Cluster) {
			c.heard(fmt.Appendf(nil, `{"node":"b2","process":"other","role":%q,"epoch":%d,"since":"2099-01-01T00:00:00Z"}`, role, epoch))
		}
	}
	message := func(epoch uint64) func(c *Cluster) {
		return func(c *Cluster) { c.log.hears(func(s *signs) { s.heard(epoch) }) }
	}
	writerEnds := func(c *Cluster) {
		heartbeat(7, "writer")(c)
		heartbeat(7, "reader")(c)
	}
	bubbletest.Each(t, map[string]row{
		"nobody is heard of": {nil, nil, silence},
		"a writer was heard of": {func(c *Cluster) {
			time.Sleep(time.Second)
			heartbeat(7, "writer")(c)
		}, nil, time.Second + silence},
		"a writer is heard of":               {nil, heartbeat(7, "writer"), never},
		"messages come":                      {nil, message(7), never},
		"others follow":                      {nil, heartbeat(7, "standby"), silence},
		"the writer ends":                    {writerEnds, nil, 0},
		"the writer ends, messages are late": {writerEnds, message(7), 0},
		"the writer ends, another one comes": {writerEnds, message(8), never},
		"one that was replaced ends": {func(c *Cluster) {
			heartbeat(6, "writer")(c)
			message(7)(c)
			heartbeat(6, "deposed")(c)
		}, nil, silence},
		"nobody ever wrote":     {func(c *Cluster) { c.log.noteTaken(0) }, nil, 0},
		"it is connected again": {nil, func(c *Cluster) { c.log.hears((*signs).listens) }, never},
		"it gave up":            {func(c *Cluster) { c.log.Resign() }, nil, never},
		"it only reads":         {func(c *Cluster) { c.config.MayWrite = false }, nil, never},
	}, func(t *testing.T, tt row) {
		c, begun := fakeNode(t), time.Now()
		c.log.noteTaken(10)
		if tt.first != nil {
			tt.first(c)
		}
		for ; time.Since(begun) < time.Minute; time.Sleep(time.Second) {
			if tt.again != nil {
				tt.again(c)
			}
			c.log.noteEnd(time.Now(), c.log.lastTaken())
			ledgertest.Equal(t, c.log.mayClaim(), time.Since(begun) >= tt.want, "after %v: whether it claims the log", time.Since(begun))
		}
	})
}

// TestWhoLagsBehindDoesNotClaim has a node that hears of nobody hold the whole log for a while alone.
func TestWhoLagsBehindDoesNotClaim(t *testing.T) {
	bubbletest.Test(t, func(t *testing.T) {
		l := fakeNode(t).log
		time.Sleep(time.Minute)
		claims := func(want bool, what string) {
			t.Helper()
			ledgertest.Equal(t, l.mayClaim(), want, "%s: whether it claims the log", what)
		}
		claims(false, "it does not know the log")
		l.noteTaken(10)
		l.noteEnd(time.Now(), 1000)
		claims(false, "it lags behind")
		l.noteTaken(1000)
		claims(true, "it has caught up")
		time.Sleep(wholeWithin + 1)
		claims(false, "it does not know whether there is more")
	})
}
