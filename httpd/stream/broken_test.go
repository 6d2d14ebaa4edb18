package stream

import (
	"strings"
	"testing"
)

// What breaks the protocol, or a limit, in a way that the Autobahn list has no case for. Nobody
// else notices.
func TestBrokenFramesEndTheConnection(t *testing.T) {
	header := func(b ...byte) []byte { return b }
	long := strings.Repeat("x", maxMessageBytes)
	tests := map[string]struct {
		sent [][]byte
		ends ending
	}{
		"unmasked text":                   {atOnce(header(0x81, 2, '{', '}')), endsUnmasked},
		"unmasked ping":                   {atOnce(header(0x89, 0)), endsUnmasked},
		"unmasked close":                  {atOnce(header(0x88, 2, 3, 0xe8)), endsUnmasked},
		"all reserved bits on a pong":     {atOnce(frameBytes(finBit|0x70|byte(opPong), "")), endsReserved},
		"a ping of 64 KiB":                {atOnce(frameBytes(finBit|byte(opPing), long)), endsLongControl},
		"a pong of 126 bytes":             {atOnce(frameBytes(finBit|byte(opPong), long[:126])), endsLongControl},
		"a fragmented close":              {atOnce(frameBytes(byte(opClose), "\x03\xe8")), endsCutControl},
		"binary inside a message":         {atOnce(begun("{"), binaryOf("}")), endsOrder},
		"an empty text inside a message":  {atOnce(begun("{"), begun("")), endsOrder},
		"open binary":                     {atOnce(frameBytes(byte(opBinary), "x")), endsBinary},
		"a message in UTF-16":             {atOnce(text("\xff\xfe{\x00}\x00")), endsUTF8},
		"half a character in two frames":  {atOnce(begun("{}\xe2"), last("\x82")), endsUTF8},
		"an overlong form inside JSON":    {atOnce(text("{\"type\":\"\xc0\xaf\"}")), endsUTF8},
		"64 KiB and one":                  {atOnce(text(long + "x")), endsTooBig},
		"64 KiB and one in two frames":    {atOnce(begun(long), last("x")), endsTooBig},
		"64 KiB and one in many frames":   {atOnce(begun(long[:30000]), more(long[:30000]), more(""), more(long[:5536]), more("x")), endsTooBig},
		"a promise of 2^63-1 bytes":       {atOnce(header(0x81, 0xff, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0)), endsTooBig},
		"a promise of 2^64-1 bytes":       {atOnce(header(0x81, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0)), endsTooBig},
		"a continuation of 2^64-1 bytes":  {atOnce(begun("x"), header(0x80, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0)), endsTooBig},
		"a bad frame with much behind it": {atOnce(frameBytes(finBit|3, ""), text(long), text(long)), endsOpcode},
	}
	n := serve(t, nil)
	other := n.dial("")
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			n.within(t).play(protocolCase{sent: tt.sent, ends: tt.ends})
		})
		slot := n.script.nextSlot()
		n.script.block(slot, account(1, 1, programA))
		other.expect(literalFrame(account(1, 1, programA), slot))
	}
}
