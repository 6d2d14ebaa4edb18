package stream

import (
	"strings"
	"testing"

	"github.com/fasthttp/websocket"

	"ledgerd/httpd/stream/frame"
)

func TestEndsAreCountedByReason(t *testing.T) {
	n := serve(t, nil)
	for reason, frame := range map[string][]byte{
		"client":   frameBytes(finBit|byte(websocket.CloseMessage), ""),
		"binary":   frameBytes(finBit|byte(websocket.BinaryMessage), ""),
		"utf8":     frameBytes(finBit|byte(websocket.TextMessage), "\xff"),
		"protocol": frameBytes(finBit|3, ""),
		"too_big":  frameBytes(finBit|byte(websocket.TextMessage), strings.Repeat("x", frame.MaxMessageBytes+1)),
	} {
		c := n.dial("?mode=none")
		c.raw(frame)
		c.endsAndHangsUp()
		n.wantMetric("ledgerd_ws_closed_total{reason=%q} 1", reason)
	}
	c := n.dial("?mode=none")
	_ = c.conn.Close()
	eventually(t, "the one who vanished is counted", func() bool {
		return n.says(`ledgerd_ws_closed_total{reason="gone"} 1`) && n.says("ledgerd_ws_connections 0")
	})
}
