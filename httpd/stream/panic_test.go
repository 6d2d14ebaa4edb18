package stream

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/fasthttp/websocket"
)

func TestPanicsEndOnlyTheirConnection(t *testing.T) {
	tests := map[string]struct{ query, sent string }{
		"of a question to the ledger": {"?mode=none", `{"type":"subscribe","snapshot":true,"pubkeys":` + list(key(1)) + `}`},
		"while joining":               {"?extended=true&resume_from=1", ""},
	}
	for name, tt := range tests {
		log, text := newLog()
		n := serve(t, func(c *Config) { c.Logger, c.History = log, faultyHistory{} })
		n.script.block(1, account(1, 1, programA))
		n.ledger.asked = func() error { panic("a fault") }
		other, c := n.dial(""), n.dial(tt.query)
		if tt.sent != "" {
			c.send("%s", tt.sent)
		}
		c.endsWith(websocket.CloseInternalServerErr, endInternal.text)
		n.script.block(2, account(1, 2, programA))
		other.expect(basicFrame(account(1, 2, programA), 2))
		if got := n.hub.meters.panics.Get(); got != 1 {
			t.Errorf("%s: %d panics counted, want 1", name, got)
		}
		if !strings.Contains(text.String(), "panic in a WebSocket connection") || !strings.Contains(text.String(), "a fault") {
			t.Errorf("%s: the log says %q", name, text)
		}
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
