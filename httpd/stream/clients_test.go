package stream

import (
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"

	"ledgerd/engine/ledger/ledgertest"
	"ledgerd/httpd/ratelimit"
)

// The holder of a key may have sockets of its own, and has none any more when the key is revoked; others stay.
func TestSocketsOfARevokedKeyAreClosed(t *testing.T) {
	inMemory(t, func(c *Config) { c.MaxConnsPerClient = 1 }, func(n *node) {
		others := n.dial("?mode=none")
		gone := new(atomic.Bool)
		n.client = ratelimit.Client{Key: netip.IPv6Unspecified().WithZone("key:1"), Sockets: 2, Revoked: gone}
		first, second := n.dial("?mode=none"), n.dial("?mode=none")
		response, _ := n.handshake("?mode=none")
		ledgertest.Equal(n, response.StatusCode, 429, "a third socket of a key that may have two")
		gone.Store(true)
		n.hub.EndRevoked()
		first.endsWith(1008, "the API key was revoked")
		second.endsWith(1008, "the API key was revoked")
		n.dial("?mode=none").endsWith(1008, "the API key was revoked") // it was let in before, and joins after
		others.send(`{"type":"ping"}`)
		if got := others.next(); !strings.HasPrefix(got, `{"type":"pong"`) {
			n.Errorf("another client was told %s", got)
		}
	})
}
