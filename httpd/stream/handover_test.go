package stream

import (
	"testing"

	"github.com/fasthttp/websocket"

	"ledgerd/engine/ledger"
)

// faultyHistory has a fault that shows while a connection is taken in.
type faultyHistory struct{ History }

func (faultyHistory) Oldest() ledger.Seq { panic("a fault") }

// What a client says on a connection that is about to end changes nothing: where a fault ended it
// before it was one of the hub's, its names would stay in the index for ever.
func TestWhoIsAboutToEndSubscribesToNothing(t *testing.T) {
	n := serve(t, func(c *Config) { c.History = faultyHistory{} })
	n.script.block(1, account(1, 1, programA))
	for range 20 {
		c := n.dial("?resume_from=1")
		for _, message := range []string{`{"type":"subscribe","pubkeys":` + list(key(1)) + `}`, `{"type":"subscribe","extended":true}`} {
			if _, err := c.conn.Write(text(message)); err != nil {
				t.Fatal(err)
			}
		}
		c.endsWith(websocket.CloseInternalServerErr, endInternal.text)
	}
	n.awaitEmpty()
	n.wantMetric(`ledgerd_ws_subscribers{wants="keys"} 0`)
	n.wantMetric(`ledgerd_ws_subscribers{wants="everything"} 0`)
}
