package stream

import (
	"fmt"
	"slices"
	"testing"

	"github.com/fasthttp/websocket"

	"ledgerd/httpd/stream/frame"
)

// protocolCase is what a client sends, and how its connection comes to its end.
type protocolCase struct {
	id   string
	end  ending
	sent [][]byte
}

func frames(all ...[]byte) [][]byte { return all }

// numbered returns the cases of a group that differ only in what they carry.
func numbered[T any](group string, end ending, all []T, sent func(T) [][]byte) (cases []protocolCase) {
	for i, one := range all {
		cases = append(cases, protocolCase{fmt.Sprintf("%s.%d", group, i+1), end, sent(one)})
	}
	return cases
}

// autobahnCases follow the public case list of the Autobahn test suite, groups 1 to 7, 9 and 10 as far
// as they are about frames. Group 12, compression, has a test of its own. A client that has broken no
// rule falls silent in the end.
func autobahnCases() []protocolCase {
	return slices.Concat(lengthCases(), controlCases(), fragmentCases(), utf8Cases(), closeCases())
}

// lengthCases are groups 1, 9.1 to 9.4 and 10: messages of all lengths, whole and in fragments.
func lengthCases() []protocolCase {
	whole := func(n int) [][]byte { return frames(text(repeat(n))) }
	binary := func(n int) [][]byte { return frames(binaryOf(repeat(n))) }
	cut := func(op frame.Opcode, size int) func(int) [][]byte {
		return func(n int) [][]byte { return fragments(op, n, repeat(size)) }
	}
	good, long := []int{0, 125, 126, 127, 128, 65535, 65536}, []int{65537, 256 << 10, 1 << 20}
	cuts := []int{1 << 10, 1300, 4 << 10, 16 << 10, 64 << 10}
	return slices.Concat(
		numbered("1.1", endsSilent, good, whole), numbered("9.1", endsTooBig, long, whole),
		numbered("1.2", endsBinary, slices.Concat(good, long), binary),
		numbered("10.1", endsSilent, cuts, cut(websocket.TextMessage, 65536)),
		numbered("9.3", endsTooBig, append(cuts, 256<<10), cut(websocket.TextMessage, 1<<20)),
		numbered("9.4", endsBinary, append(cuts, 256<<10), cut(websocket.BinaryMessage, 1<<20)))
}

// controlCases are groups 2 to 4: control frames, reserved bits, and opcodes without a meaning. No frame
// is unmasked, and no extension is negotiated, so no reserved bit means anything.
func controlCases() []protocolCase {
	const bytes8 = "\x00\xff\xfe\xfd\xfc\xfb\x00\xff"
	cases := []protocolCase{
		{"2.1", endsSilent, frames(ping(""))},
		{"2.3", endsSilent, frames(ping(bytes8))},
		{"2.4", endsSilent, frames(ping(repeat(125)))},
		{"2.5", endsLongControl, frames(ping(repeat(126)))},
		{"2.8", endsSilent, frames(pong("unasked"))},
		{"2.10", endsSilent, slices.Repeat(frames(ping("x")), 10)},
		{"a ping of 64 KiB", endsLongControl, frames(ping(repeat(65536)))},
		{"a pong of 126 bytes", endsLongControl, frames(pong(repeat(126)))},
		{"unmasked text", endsUnmasked, frames([]byte{0x81, 2, '{', '}'})},
		{"unmasked ping", endsUnmasked, frames([]byte{0x89, 0})},
		{"unmasked close", endsUnmasked, frames([]byte{0x88, 2, 3, 0xe8})},
	}
	between := func(id string, end ending, first byte, payload string) {
		cases = append(cases, protocolCase{id, end, frames(text("before"), frameBytes(first, payload), ping("after"))})
	}
	known := []byte{byte(websocket.TextMessage), byte(websocket.BinaryMessage), byte(websocket.PingMessage), byte(websocket.PongMessage), byte(websocket.CloseMessage)}
	for bits := byte(1); bits < 8; bits++ {
		for _, op := range known {
			between(fmt.Sprintf("3.%d, opcode %d", bits, op), endsReserved, finBit|bits<<4|op, "")
		}
	}
	for op := byte(1); op < 16; op++ {
		if !slices.Contains(known, op) {
			between(fmt.Sprintf("4, opcode %d", op), endsOpcode, finBit|op, "")
			between(fmt.Sprintf("4, opcode %d, with a payload", op), endsOpcode, finBit|op, "the case")
		}
	}
	return cases
}

// fragmentCases are group 5: fragments, and control frames between them.
func fragmentCases() []protocolCase {
	return []protocolCase{
		{"5.1", endsCutControl, frames(frameBytes(byte(websocket.PingMessage), "one"), last("two"))},
		{"5.2", endsCutControl, frames(frameBytes(byte(websocket.PongMessage), "one"), last("two"))},
		{"a fragmented close", endsCutControl, frames(frameBytes(byte(websocket.CloseMessage), "\x03\xe8"))},
		{"5.3", endsSilent, frames(begun("one"), last("two"))},
		{"5.6", endsSilent, frames(begun("one"), ping("between"), last("two"))},
		{"5.9", endsOrder, frames(last("of nothing"), text("whole"))},
		{"5.12", endsOrder, frames(more("of nothing"), text("whole"))},
		{"5.15", endsOrder, frames(begun("one"), last("two"), more("of nothing"), text("whole"))},
		{"5.18", endsOrder, frames(begun("one"), text("two"))},
		{"5.19", endsSilent, frames(begun("one"), more("two"), ping("first"), more("three"), more("four"), ping("second"), last("five"))},
		{"binary inside a message", endsOrder, frames(begun("{"), binaryOf("}"))},
		{"an empty text inside a message", endsOrder, frames(begun("{"), begun(""))},
		{"open binary", endsBinary, frames(frameBytes(byte(websocket.BinaryMessage), "x"))},
		{"64 KiB and one in many frames", endsTooBig, frames(begun(repeat(30000)), more(repeat(30000)), more(""), more(repeat(5536)), more("x"))},
		{"a promise of 2^63-1 bytes", endsTooBig, frames([]byte{0x81, 0xff, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0})},
		{"a continuation of 2^64-1 bytes", endsTooBig,
			frames(begun("x"), []byte{0x80, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0})},
		{"the limit is one of each message", endsSilent, frames(text(repeat(65536)), text(repeat(65536)))},
	}
}

const (
	greek   = "κ\u1f79σμε" // one of its characters has three bytes
	mixed   = "µ@ßöäüàá, plain, and 𝄞"
	spoiled = greek + "\xed\xa0\x80" + "edited" // a lone surrogate within
)

// utf8Cases are group 6. In 6.1 to 6.4 whole messages are cut between and inside characters. How soon text is
// noticed that cannot become valid any more RFC 6455, section 8.1, does not say. A message means nothing
// before its end, so it is judged when it is whole: the suite calls that non-strict. From 6.5 on one
// sequence is a message, and the sequences are those of Markus Kuhn's stress test for decoders.
func utf8Cases() []protocolCase {
	const beyond = greek + "\xf4\x90\x80\x80" + "edited" // past the last code point, from the second byte on
	whole := func(s string) [][]byte { return frames(text(s)) }
	bytewise := func(s string) [][]byte { return fragments(websocket.TextMessage, 1, s) }
	valid := []string{
		"hello$world", "hello¢world", "hello€world", "hello𤭢world", greek, mixed, "", // 6.5
		"\x00", "\u0080", "\u0800", "\U00010000", "\x7f", "\u07ff", "\uffff", "\U0010ffff", // 6.7, 6.9: the first and the last of each length
		"\ud7ff", "\ue000", "\ufffd", // 6.11: around the surrogates
		"\ufffe", "\U0001fffe", "\U0010fffe", "\ufff9", "\ufffc", // 6.22, 6.23: no characters, but good UTF-8
	}
	invalid := []string{
		spoiled, "\xff\xfe{\x00}\x00", // 6.3, and UTF-16
		greek[:1], greek[:3], greek[:4], greek[:len(greek)-1], // 6.6: a character begun
		"\xf8\x88\x80\x80\x80", "\xfc\x84\x80\x80\x80\x80", "\xf7\xbf\xbf\xbf", "\xfd\xbf\xbf\xbf\xbf\xbf", // 6.8, 6.10: five and six bytes
		"\xf4\x90\x80\x80",                                 // 6.11: past the last code point
		"\x80", "\xbf", "\x80\xbf", "\x80\xbf\x80\xbf\x80", // 6.12: bytes that can only go on
		"\xc0 \xdf ", "\xe0 \xef ", "\xf0 \xf7 ", "\xf8 \xfb ", "\xfc \xfd ", // 6.13: that can only begin
		"\xdf", "\xef\xbf", "\xf7\xbf\xbf", "\xc0\xe0\x80\xf0\x80\x80", // 6.14, 6.15: the last is missing
		"\xfe", "\xff", "\xfe\xfe\xff\xff", // 6.16: bytes of no character
		"\xc0\xaf", "\xe0\x80\xaf", "\xf0\x80\x80\xaf", "\xc1\xbf", "\xe0\x9f\xbf", "\xf0\x8f\xbf\xbf", // 6.17, 6.18: too long
		"\xc0\x80", "\xe0\x80\x80", "\xf0\x80\x80\x80", // 6.19
		"\xed\xa0\x80", "\xed\xad\xbf", "\xed\xbf\xbf", "\xed\xa0\x80\xed\xb0\x80", // 6.20, 6.21: surrogates, alone and in pairs
	}
	cut := len(greek) + 2
	return slices.Concat(
		numbered("6, valid", endsSilent, valid, whole), numbered("6, invalid", endsUTF8, invalid, whole),
		numbered("6.2.3", endsSilent, []string{mixed, greek}, bytewise), numbered("6.3.2", endsUTF8, []string{spoiled}, bytewise),
		[]protocolCase{
			{"6.1.2", endsSilent, frames(begun(""), more(""), last(""))},
			{"6.1.3", endsSilent, frames(begun(""), more("middle"), last(""))},
			{"6.4.1", endsSilent, frames(begun(beyond[:cut]), more(beyond[cut:]))},
			{"6.4.2", endsUTF8, frames(begun(beyond[:cut]), ping(""), last(beyond[cut:]))},
		})
}

// closeCases are group 7: what a close frame carries. Codes that a client may send are good, others a breach.
func closeCases() []protocolCase {
	cases := []protocolCase{
		{"7.1.1", endsNormally, frames(text("before"), closeOf(codeOf(1000, "")), ping("after"))},
		{"7.1.5", endsNormally, frames(begun("one"), closeOf(codeOf(1000, "")), last("two"))},
		{"7.3.1", endsNormally, frames(closeOf(""))},
		{"7.3.2", endsHalfCode, frames(closeOf("\x03"))},
		{"7.3.4", endsNormally, frames(closeOf(codeOf(1000, "a reason")))},
		{"7.3.5", endsNormally, frames(closeOf(codeOf(1000, repeat(123))))},
		{"7.3.6", endsLongControl, frames(closeOf(codeOf(1000, repeat(124))))},
		{"7.5.1", endsUTF8, frames(closeOf(codeOf(1000, spoiled)))},
	}
	code := func(code uint16) [][]byte { return frames(closeOf(codeOf(code, ""))) }
	for _, good := range []uint16{1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 1012, 1013, 1014, 3000, 3999, 4000, 4999} {
		cases = append(cases, protocolCase{fmt.Sprintf("7.7, %d", good), ending{good, ""}, code(good)})
	}
	bad := []uint16{0, 999, 1004, 1005, 1006, 1015, 1016, 1100, 2000, 2999, 5000, 65535}
	return append(cases, numbered("7.9", endsBadCode, bad, code)...)
}

// F39: FuzzClient holds the server to what foretell says of each case. This holds foretell to the case list.
func TestTheCaseListIsForetold(t *testing.T) {
	for _, pc := range autobahnCases() {
		if _, end, known := foretell(slices.Concat(pc.sent...)); !known || end != pc.end {
			t.Errorf("%s: ends with %v, want %v", pc.id, end, pc.end)
		}
	}
}
