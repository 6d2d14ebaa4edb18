package stream

import (
	"errors"
	"io"
	"strings"
	"testing"
)

func TestPanicsEndOnlyTheirConnection(t *testing.T) {
	log, text := newLog()
	n := serve(t, func(c *Config) { c.Logger = log })
	n.script.block(1, account(1, 1, programA))
	n.ledger.asked = func() error { panic("a fault") }
	c, other := n.dial("?mode=none"), n.dial("")
	c.send(`{"type":"subscribe","snapshot":true,"pubkeys":%s}`, list(key(1)))
	if before, code, text := c.endsAndHangsUp(); len(before) > 0 || code != 1011 || text != "internal error" {
		t.Errorf("ended with %d %q after %q, want 1011 internal error", code, text, before)
	}
	n.script.block(2, account(1, 2, programA))
	other.expect(basicFrame(account(1, 2, programA), 2))
	if got := n.hub.meters.panics.Get(); got != 1 {
		t.Errorf("%d panics counted, want 1", got)
	}
	if !strings.Contains(text.String(), "panic in a WebSocket connection") || !strings.Contains(text.String(), "a fault") {
		t.Errorf("log says %q", text)
	}
}

func TestPanicsOfTheWriterEndOnlyTheirConnection(t *testing.T) {
	inMemory(t, nil, func(n *node) {
		faulty, other := n.dial(""), n.dial("")
		faulty.near().fail()
		n.script.block(1, account(1, 1, programA))
		other.expect(basicFrame(account(1, 1, programA), 1))
		if _, _, err := faulty.read(); !errors.Is(err, io.EOF) {
			n.Errorf("the connection ended with %v, want EOF", err)
		}
		if got := n.hub.meters.panics.Get(); got != 1 {
			n.Errorf("%d panics counted, want 1", got)
		}
		n.script.block(2, account(1, 2, programA))
		other.expect(basicFrame(account(1, 2, programA), 2))
	})
}
