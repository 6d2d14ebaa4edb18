package stream

import (
	"fmt"
	"strings"
	"testing"

	"ledgerd/engine/ledger"
	"ledgerd/httpd/stream/frame"
)

func TestWhatWaitsIsToldBeforeTheEnd(t *testing.T) {
	n := serve(t, nil)
	c := n.dial("")
	for slot := range ledger.Slot(20) {
		n.script.block(slot+1, account(1, ledger.Lamports(slot+1), programA))
	}
	c.close("\x03\xe8")
	if before, code, _ := c.ends(); len(before) != 20 || code != 1000 {
		t.Errorf("%d frames before %d, want 20 before 1000", len(before), code)
	}
}

func TestEndsAreCountedByReason(t *testing.T) {
	n := serve(t, nil)
	for reason, frame := range map[string][]byte{
		"client":   frameBytes(finBit|byte(frame.Close), ""),
		"binary":   frameBytes(finBit|byte(frame.Binary), ""),
		"utf8":     frameBytes(finBit|byte(frame.Text), "\xff"),
		"protocol": frameBytes(finBit|3, ""),
		"too_big":  frameBytes(finBit|byte(frame.Text), strings.Repeat("x", frame.MaxMessageBytes+1)),
	} {
		c := n.dial("?mode=none")
		c.raw(frame)
		c.endsAndHangsUp()
		var text strings.Builder
		n.hub.meters.write(&text)
		if want := fmt.Sprintf("ledgerd_ws_closed_total{reason=%q} 1\n", reason); !strings.Contains(text.String(), want) {
			t.Errorf("no %q in\n%s", want, text.String())
		}
	}
	c := n.dial("?mode=none")
	_ = c.conn.Close()
	eventually(t, "the one who vanished is counted", func() bool {
		var text strings.Builder
		n.hub.meters.write(&text)
		return strings.Contains(text.String(), `ledgerd_ws_closed_total{reason="gone"} 1`+"\n") &&
			strings.Contains(text.String(), "ledgerd_ws_connections 0\n")
	})
}
