package stream

import (
	"fmt"
	"runtime"
	"testing"
	"time"
)

// largeSizes are those of groups 9.1 and 9.2. The first is the largest message there may be.
var largeSizes = []int{64 << 10, 256 << 10, 1 << 20, 4 << 20, 8 << 20, 16 << 20}

// Groups 9.1 and 9.2: large messages in one frame. Its header says enough.
func TestAutobahn9LargeMessages(t *testing.T) {
	cases := numbered("9.1", largeSizes, func(n int) protocolCase {
		if n <= maxMessageBytes {
			return protocolCase{sent: atOnce(text(repeat(n))), gets: []reply{refusal}}
		}
		return protocolCase{sent: atOnce(text(repeat(n))), ends: endsTooBig}
	})
	runCases(t, append(cases, numbered("9.2", largeSizes, func(n int) protocolCase {
		return protocolCase{sent: atOnce(binaryOf(repeat(n))), ends: endsBinary}
	})...))
}

// fragmentSizes are those of groups 9.3 and 9.4.
var fragmentSizes = []int{64, 256, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20}

// inFragments is a case of group 9.3: a message of 4 MiB. Small fragments use up the budget
// before 64 KiB have come.
func inFragments(size int) protocolCase {
	pc := protocolCase{sent: atOnce(fragments(opText, size, repeat(4<<20))...), ends: endsTooBig}
	if size*budgetBurst < maxMessageBytes {
		pc.ends = endsRate
	}
	return pc
}

// Groups 9.3 and 9.4: a large message in fragments of all sizes.
func TestAutobahn9LargeMessagesInFragments(t *testing.T) {
	cases := numbered("9.3", fragmentSizes, inFragments)
	runCases(t, append(cases, numbered("9.4", fragmentSizes, func(size int) protocolCase {
		return protocolCase{sent: atOnce(fragments(opBinary, size, repeat(4<<20))...), ends: endsBinary}
	})...))
}

// chopSizes are those of groups 9.5 and 9.6.
var chopSizes = []int{64, 128, 256, 512, 1024, 2048}

// Groups 9.5 and 9.6: a message of 1 MiB, written in small chops, and the largest there may be.
func TestAutobahn9Chops(t *testing.T) {
	cases := numbered("9.5", chopSizes, func(size int) protocolCase {
		return protocolCase{sent: chopped(size, text(repeat(1<<20))), ends: endsTooBig}
	})
	cases = append(cases, numbered("9.6", chopSizes, func(size int) protocolCase {
		return protocolCase{sent: chopped(size, binaryOf(repeat(1<<20))), ends: endsBinary}
	})...)
	runCases(t, append(cases, numbered("9.5 with 64 KiB", chopSizes, func(size int) protocolCase {
		return protocolCase{sent: chopped(size, text(repeat(64<<10))), gets: []reply{refusal}}
	})...))
}

// tripSizes are those of groups 9.7 and 9.8.
var tripSizes = []int{0, 16, 64, 256, 1024, 4096}

// Group 9.7: a thousand messages, each sent when the one before was answered. Without a pause
// that is more than the budget, which holds for as many as it says; at the pace at which it
// fills, all are answered.
func TestAutobahn9RoundTrips(t *testing.T) {
	const trips = 1000
	for i, size := range tripSizes {
		t.Run(fmt.Sprintf("9.7.%d", i+1), func(t *testing.T) {
			inMemory(t, nil, func(n *node) {
				_, c := n.handshake("?mode=none")
				for range budgetBurst {
					n.trip(c, size)
				}
				c.raw(text(repeat(size)))
				n.checkEnd(c, protocolCase{ends: endsRate})
			})
			inMemory(t, nil, func(n *node) {
				_, c := n.handshake("?mode=none")
				for range trips {
					n.trip(c, size)
					time.Sleep(time.Second / budgetPerSecond)
				}
				c.close(codeOf(1000, ""))
				c.ends()
			})
		})
	}
	runCases(t, numbered("9.8", tripSizes, func(size int) protocolCase {
		return protocolCase{sent: atOnce(binaryOf(repeat(size))), ends: endsBinary}
	}))
}

// trip sends a message and reads its answer, past pings of the server's.
func (n *node) trip(c *client, size int) {
	n.Helper()
	c.raw(text(repeat(size)))
	for {
		op, payload, err := c.read()
		if op == opPing && err == nil {
			continue
		}
		if (reply{op, payload}) != refusal || err != nil {
			n.Fatalf("opcode %#x, payload %q, err %v, want the answer", op, payload, err)
		}
		return
	}
}

// Of a message that is refused nothing more is kept than of one that is not, however long
// it goes on.
func TestRefusedMessagesAreNotKept(t *testing.T) {
	const most = 1 << 20 // what 64 KiB cost while they grow, a handshake, and the bubble around
	cases := numbered("9.3", fragmentSizes, inFragments)[2:]
	for _, n := range largeSizes[1:] {
		cases = append(cases, protocolCase{id: fmt.Sprint(n, " bytes"), sent: atOnce(text(repeat(n))), ends: endsTooBig})
	}
	for _, pc := range cases {
		inMemory(t, nil, func(n *node) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			n.play(pc)
			runtime.ReadMemStats(&after)
			if got := after.TotalAlloc - before.TotalAlloc; got > most {
				n.Errorf("%s: %d bytes were allocated for it, want at most %d", pc.id, got, most)
			}
		})
	}
}

// Case 10.1.1: 64 KiB in fragments of 1300 bytes.
func TestAutobahn10AutoFragmentation(t *testing.T) {
	runCases(t, []protocolCase{
		{id: "10.1.1", sent: atOnce(fragments(opText, 1300, repeat(65536))...), gets: []reply{refusal}},
	})
}
