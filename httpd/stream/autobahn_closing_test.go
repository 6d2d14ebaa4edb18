package stream

import (
	"testing"
)

// Group 7.1: what comes beside a close frame. Nothing that follows one is answered.
func TestAutobahn7Closing(t *testing.T) {
	bye := closeOf(codeOf(1000, ""))
	runCases(t, []protocolCase{
		{id: "7.1.1", sent: atOnce(text("before"), bye), gets: []reply{refusal}, ends: endsNormally},
		{id: "7.1.2", sent: atOnce(bye, bye), ends: endsNormally},
		{id: "7.1.3", sent: atOnce(bye, ping("behind")), ends: endsNormally},
		{id: "7.1.4", sent: atOnce(bye, text("behind")), ends: endsNormally},
		{id: "7.1.5", sent: atOnce(begun("one"), bye, last("two")), ends: endsNormally},
		// The suite leaves open what comes of a long message before a close frame: this one is too long.
		{id: "7.1.6", sent: each(text(repeat(256<<10)), text("behind"), bye, ping("")), ends: endsTooBig},
	})
}

// Groups 7.3 and 7.5: what a close frame carries.
func TestAutobahn7ClosePayloads(t *testing.T) {
	runCases(t, []protocolCase{
		{id: "7.3.1", sent: atOnce(closeOf("")), ends: endsNormally},
		{id: "7.3.2", sent: atOnce(closeOf("\x03")), ends: endsHalfCode},
		{id: "7.3.3", sent: atOnce(closeOf(codeOf(1000, ""))), ends: endsNormally},
		{id: "7.3.4", sent: atOnce(closeOf(codeOf(1000, "a reason"))), ends: endsNormally},
		{id: "7.3.5", sent: atOnce(closeOf(codeOf(1000, repeat(123)))), ends: endsNormally},
		{id: "7.3.6", sent: atOnce(closeOf(codeOf(1000, repeat(124)))), ends: endsLongControl},
		{id: "7.5.1", sent: atOnce(closeOf(codeOf(1000, spoiled))), ends: endsUTF8},
	})
}

// Groups 7.7, 7.9 and 7.13: codes that a client may send are sent back, others are a breach of
// the protocol.
func TestAutobahn7CloseCodes(t *testing.T) {
	sending := func(code uint16) [][]byte { return atOnce(closeOf(codeOf(code, ""))) }
	good := func(code uint16) protocolCase {
		return protocolCase{sent: sending(code), ends: ending{code, ""}}
	}
	bad := func(code uint16) protocolCase { return protocolCase{sent: sending(code), ends: endsBadCode} }
	cases := numbered("7.7", []uint16{1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 3000, 3999, 4000, 4999}, good)
	cases = append(cases, numbered("7.9", []uint16{0, 999, 1004, 1005, 1006, 1016, 1100, 2000, 2999}, bad)...)
	// Left to the server.
	cases = append(cases, numbered("7.13", []uint16{5000, 65535}, bad)...)
	// Of the codes registered since, three may be sent. 1015 stands for a failed TLS handshake and may not.
	cases = append(cases, numbered("beyond the list", []uint16{1012, 1013, 1014}, good)...)
	cases = append(cases, numbered("beyond the list, bad", []uint16{1015}, bad)...)
	runCases(t, cases)
}
