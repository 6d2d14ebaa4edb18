package stream

import (
	"testing"

	"ledgerd/engine/ledger"
)

// Group 12: whatever compression a client offers, none is negotiated, and a compressed frame
// is one with a reserved bit. So nothing that a client sends grows here.
func TestAutobahn12CompressionIsNeverNegotiated(t *testing.T) {
	offers := []string{
		"permessage-deflate",
		"permessage-deflate; client_no_context_takeover; client_max_window_bits",
		"permessage-deflate; server_max_window_bits=9; client_max_window_bits=9",
		"permessage-deflate; server_no_context_takeover; server_max_window_bits=15, permessage-deflate",
		"permessage-deflate; client_max_window_bits, x-webkit-deflate-frame",
		"permessage-bzip2, permessage-snappy",
	}
	n := serve(t, nil)
	for i, offer := range offers {
		// dial fails on any extension in the answer.
		c := n.dial("", "Sec-WebSocket-Extensions: "+offer)
		slot := ledger.Slot(i + 1)
		n.script.block(slot, account(1, ledger.Lamports(slot), programA))
		c.expect(literalFrame(account(1, ledger.Lamports(slot), programA), slot))
		c.raw(frameBytes(finBit|0x40|byte(opText), "\xaa\x56\x2a"))
		n.checkEnd(c, protocolCase{ends: endsReserved})
	}
}
