package stream

import (
	"bytes"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fasthttp/websocket"

	"ledgerd/engine/ledger/ledgertest"
	"ledgerd/httpd/stream/frame"
)

// G15, F37, F39, F40: FuzzClient lets a client send anything at all, cut into pieces anyhow, and then fall
// silent. It is answered with legal frames only (read checks each), the connection ends with
// a close frame in time, memory stays in proportion to what was sent, and nothing stays
// behind. Which answers and which end come of what is in the transcripts.
func FuzzClient(f *testing.F) {
	join := func(frames ...[]byte) []byte { return bytes.Join(frames, nil) }
	for _, sent := range [][]byte{
		nil,
		text(`{"type":"subscribe","id":1,"pubkeys":` + list(key(1)) + `,"programs":` + list(programA) + `,"snapshot":true,"extended":true}`),
		join(text(`{"type":"subscribe","snapshot":true}`), text(`{"type":"unsubscribe","id":"x","all":true}`), text(`{"type":"ping","id":-1}`)),
		join(text(`{"type":"resume","id":3,"from_seq":0}`), text(`{"type":"resume","from_seq":9}`), closeOf("")),
		bytes.Repeat(text("x"), 3*budgetBurst), bytes.Repeat(ping("x"), 3*budgetBurst), bytes.Repeat(pong(""), 3*budgetBurst),
		join(begun("{"), bytes.Repeat(more(""), 3*budgetBurst)),
		bytes.Join(fragments(websocket.TextMessage, 64, repeat(20_000)), nil),
		join(begun("{}\xe2"), last("\x82")),
		join(frameBytes(finBit|3, ""), text(repeat(frame.MaxMessageBytes)), text(repeat(frame.MaxMessageBytes))),
		join(text(repeat(3000)), closeOf("")),
		{0x81, 0xfe, 0xff, 0xff, 1, 2, 3, 4, 5},
		{0x88}, {0xf1, 0x80}, {0x83, 0x80}, {0x09, 0x80}, {0x89, 0xfe},
	} {
		f.Add(sent, uint16(0), byte(0))
		f.Add(sent, uint16(0), byte(128))
		f.Add(sent, uint16(3), byte(1))
		f.Add(sent, uint16(1000), byte(128))
	}
	for _, sent := range autobahnCases(f) {
		f.Add(sent, uint16(0), byte(0))
		f.Add(sent, uint16(1+len(sent)/100), byte(128)) // a short one byte by byte
	}
	queries := []string{"?mode=none", "", "?extended=true&commitment=confirmed", "?resume_from=7&overflow=conflate"}
	f.Fuzz(func(t *testing.T, sent []byte, octets uint16, query byte) {
		pieces := [][]byte{nil, sent} // behind the handshake, or right from it on
		if octets > 0 {
			pieces = slices.AppendSeq([][]byte{nil}, slices.Chunk(sent, int(octets)))
		}
		if query >= 128 {
			pieces = pieces[1:]
		}
		if len(pieces) == 0 {
			pieces = [][]byte{nil}
		}
		asked := queries[int(query)%len(queries)]
		inMemory(t, nil, func(n *node) {
			n.script.block(1, account(1, 1, programA), account(2, 1, programB))
			n.babble(asked, sent, pieces)
		})
	})
}

// autobahnCases returns what the client sends in each scene of the transcript of the Autobahn case list.
func autobahnCases(tb testing.TB) (cases [][]byte) {
	list := readFile(tb, "testdata/autobahn.txt")
	tr := &transcript{node: &node{TB: tb}}
	for scene := range strings.SplitSeq(string(list), "\n== ") {
		var sent []byte
		for line := range strings.Lines(scene) {
			_, frames := tr.frames(strings.TrimSpace(line))
			sent = append(sent, bytes.Join(frames, nil)...)
		}
		cases = append(cases, sent)
	}
	return cases
}

// babble sends pieces right behind a handshake, the first of them in one with it, does not wait for the answer, and checks all
// that comes of them.
func (n *node) babble(query string, sent []byte, pieces [][]byte) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	since := time.Now()
	c := n.open()
	pieces[0] = append(requestOf(query), pieces[0]...)
	go func() {
		for _, p := range pieces {
			_, _ = c.conn.Write(p) // the end may come in the middle of it
		}
	}()
	response, err := http.ReadResponse(c.r, nil)
	if err != nil || response.StatusCode != http.StatusSwitchingProtocols {
		n.Fatalf("handshake %q: response %v, err %v", query, response, err)
	}
	end := c.untilEnd()
	runtime.ReadMemStats(&after)
	if took := time.Since(since); took > silenceTimeout+time.Second+closeWait {
		n.Errorf("the end came after %v", took)
	}
	synctest.Wait()
	ledgertest.Equal(n, n.leftovers(), "", "what is left")
	if why := reasonOf(end); why != "" {
		n.wantMetric("ledgerd_ws_closed_total{reason=%q} 1", why)
	}
	// A handshake, the blocks of a ring, and a message while it grows; and what parsing costs at its worst.
	if most := uint64(4<<20 + 64*len(sent)); after.TotalAlloc-before.TotalAlloc > most {
		n.Fatalf("%d bytes were allocated for %d that were sent, want at most %d", after.TotalAlloc-before.TotalAlloc, len(sent), most)
	}
}

// reasonOf returns what an end is counted as; "" if it can be several things.
func reasonOf(end ending) string {
	switch end.text {
	case "":
		return "client"
	case endSilent.text:
		return "silent"
	}
	return map[uint16]string{1002: "protocol", 1003: "binary", 1007: "utf8", 1009: "too_big"}[end.code]
}
