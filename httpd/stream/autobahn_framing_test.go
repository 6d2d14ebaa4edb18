package stream

import (
	"slices"
	"testing"
)

// Group 1: messages of all lengths at which the header changes.
func TestAutobahn1Framing(t *testing.T) {
	sizes := []int{0, 125, 126, 127, 128, 65535, 65536}
	cases := numbered("1.1", sizes, func(n int) protocolCase {
		return protocolCase{sent: atOnce(text(repeat(n))), gets: []reply{refusal}}
	})
	cases = append(cases, protocolCase{id: "1.1.8", sent: chopped(997, text(repeat(65536))), gets: []reply{refusal}})
	cases = append(cases, numbered("1.2", sizes, func(n int) protocolCase {
		return protocolCase{sent: atOnce(binaryOf(repeat(n))), ends: endsBinary}
	})...)
	cases = append(cases, protocolCase{id: "1.2.8", sent: chopped(997, binaryOf(repeat(65536))), ends: endsBinary})
	runCases(t, cases)
}

// Group 2: pings are answered with what they carry and in their order, pongs with nothing.
func TestAutobahn2PingsAndPongs(t *testing.T) {
	const notText = "\x00\xff\xfe\xfd\xfc\xfb\x00\xff"
	var ten []string
	for i := range 10 {
		ten = append(ten, "ping number "+string(rune('0'+i)))
	}
	var pings [][]byte
	var pongs []reply
	for _, p := range ten {
		pings, pongs = append(pings, ping(p)), append(pongs, ponged(p))
	}
	longest := repeat(125)
	runCases(t, []protocolCase{
		{id: "2.1", sent: atOnce(ping("")), gets: []reply{ponged("")}},
		{id: "2.2", sent: atOnce(ping("some text")), gets: []reply{ponged("some text")}},
		{id: "2.3", sent: atOnce(ping(notText)), gets: []reply{ponged(notText)}},
		{id: "2.4", sent: atOnce(ping(longest)), gets: []reply{ponged(longest)}},
		{id: "2.5", sent: atOnce(ping(repeat(126))), ends: endsLongControl},
		{id: "2.6", sent: chopped(1, ping(longest)), gets: []reply{ponged(longest)}},
		{id: "2.7", sent: atOnce(pong(""))},
		{id: "2.8", sent: atOnce(pong("unasked"))},
		{id: "2.9", sent: atOnce(pong("unasked"), ping("asked")), gets: []reply{ponged("asked")}},
		{id: "2.10", sent: atOnce(pings...), gets: pongs},
		{id: "2.11", sent: chopped(1, pings...), gets: pongs},
	})
}

// Group 3: no extension is negotiated, so no reserved bit means anything. What came before
// is answered, what comes behind is not.
func TestAutobahn3ReservedBits(t *testing.T) {
	reserved := func(bits byte, op opcode, payload string) []byte {
		return frameBytes(finBit|bits<<4|byte(op), payload)
	}
	around := func(bits byte) [][]byte {
		return [][]byte{text("before"), reserved(bits, opText, "the case"), ping("behind")}
	}
	before := []reply{refusal}
	runCases(t, []protocolCase{
		{id: "3.1", sent: atOnce(reserved(1, opText, "the case")), ends: endsReserved},
		{id: "3.2", sent: atOnce(around(2)...), gets: before, ends: endsReserved},
		{id: "3.3", sent: each(around(3)...), gets: before, ends: endsReserved},
		{id: "3.4", sent: chopped(1, around(4)...), gets: before, ends: endsReserved},
		{id: "3.5", sent: atOnce(reserved(5, opBinary, "the case")), ends: endsReserved},
		{id: "3.6", sent: atOnce(reserved(6, opPing, "the case")), ends: endsReserved},
		{id: "3.7", sent: atOnce(reserved(7, opClose, codeOf(1000, ""))), ends: endsReserved},
	})
}

// Group 4: opcodes without a meaning.
func TestAutobahn4Opcodes(t *testing.T) {
	var cases []protocolCase
	for group, first := range map[string]byte{"4.1": 3, "4.2": 11} {
		unknown := func(i byte, payload string) []byte { return frameBytes(finBit|(first+i), payload) }
		around := func(i byte, payload string) [][]byte {
			return [][]byte{text("before"), unknown(i, payload), ping("behind")}
		}
		before := []reply{refusal}
		cases = append(cases,
			protocolCase{id: group + ".1", sent: atOnce(unknown(0, "")), ends: endsOpcode},
			protocolCase{id: group + ".2", sent: atOnce(unknown(1, "the case")), ends: endsOpcode},
			protocolCase{id: group + ".3", sent: each(around(2, "")...), gets: before, ends: endsOpcode},
			protocolCase{id: group + ".4", sent: each(around(3, "the case")...), gets: before, ends: endsOpcode},
			protocolCase{id: group + ".5", sent: chopped(1, around(4, "the case")...), gets: before, ends: endsOpcode},
		)
	}
	runCases(t, cases)
}

// Group 5: fragments, and control frames between them.
func TestAutobahn5Fragmentation(t *testing.T) {
	answered := []reply{refusal}
	var cases []protocolCase
	// Each of these comes in one piece, frame by frame, and octet by octet.
	inPieces := func(ids [3]string, frames [][]byte, gets []reply, ends ending) {
		for i, sent := range [][][]byte{atOnce(frames...), each(frames...), chopped(1, frames...)} {
			cases = append(cases, protocolCase{ids[i], sent, gets, ends})
		}
	}
	cases = append(cases,
		protocolCase{id: "5.1", sent: each(frameBytes(byte(opPing), "one"), last("two")), ends: endsCutControl},
		protocolCase{id: "5.2", sent: each(frameBytes(byte(opPong), "one"), last("two")), ends: endsCutControl})
	inPieces([3]string{"5.3", "5.4", "5.5"},
		[][]byte{begun("one"), last("two")}, answered, ending{})
	inPieces([3]string{"5.6", "5.7", "5.8"},
		[][]byte{begun("one"), ping("between"), last("two")}, []reply{ponged("between"), refusal}, ending{})
	inPieces([3]string{"5.9", "5.10", "5.11"},
		[][]byte{last("of nothing"), text("whole")}, nil, endsOrder)
	inPieces([3]string{"5.12", "5.13", "5.14"},
		[][]byte{more("of nothing"), text("whole")}, nil, endsOrder)
	twice := func(stray []byte) [][]byte {
		return slices.Repeat([][]byte{stray, begun("one"), last("two")}, 2)
	}
	five := [][]byte{
		begun("one"), more("two"), ping("first"),
		more("three"), more("four"), ping("second"), last("five"),
	}
	pongs := []reply{ponged("first"), ponged("second"), refusal}
	cases = append(cases,
		protocolCase{id: "5.15", sent: atOnce(begun("one"), last("two"), more("of nothing"), text("whole")), gets: answered, ends: endsOrder},
		protocolCase{id: "5.16", sent: each(twice(more("of nothing"))...), ends: endsOrder},
		protocolCase{id: "5.17", sent: each(twice(last("of nothing"))...), ends: endsOrder},
		protocolCase{id: "5.18", sent: each(begun("one"), text("two")), ends: endsOrder},
		// The suite waits a second between two and three: TestPingsAreAnsweredWithinAMessage.
		protocolCase{id: "5.19", sent: atOnce(five...), gets: pongs},
		protocolCase{id: "5.20", sent: each(five...), gets: pongs})
	runCases(t, cases)
}

// Cases 5.19 and 5.20: the first ping is answered while the message is still under way.
func TestPingsAreAnsweredWithinAMessage(t *testing.T) {
	inMemory(t, nil, func(n *node) {
		c := n.dial("?mode=none")
		expectPong := func(want string) {
			if op, got, err := c.read(); op != opPong || got != want || err != nil {
				n.Fatalf("opcode %#x, payload %q, err %v, want a pong of %q", op, got, err, want)
			}
		}
		for _, frame := range [][]byte{begun(`{"type":"unsub`), more(`scribe",`), ping("first")} {
			c.raw(frame)
		}
		expectPong("first")
		for _, frame := range [][]byte{more(`"id":1,`), more(`"all":`), ping("second")} {
			c.raw(frame)
		}
		expectPong("second")
		c.raw(last(`true}`))
		c.expect(`{"type":"unsubscribed","id":1,"pubkeys":0,"programs":0}`)
	})
}
