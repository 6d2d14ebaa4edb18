package stream

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/fasthttp/websocket"

	"ledgerd/engine/ledger"
)

func TestClosesAreEchoed(t *testing.T) {
	closing := func(code uint16, text string) string {
		return string(binary.BigEndian.AppendUint16(nil, code)) + text
	}
	tests := map[string]struct {
		payload string
		code    uint16
		text    string
	}{
		"no code":                    {"", 1000, ""},
		"normal":                     {closing(1000, ""), 1000, ""},
		"with a reason":              {closing(1000, "bye"), 1000, ""},
		"the longest reason":         {closing(1000, strings.Repeat("r", 123)), 1000, ""},
		"going away":                 {closing(1001, ""), 1001, ""},
		"protocol error":             {closing(1002, ""), 1002, ""},
		"1003":                       {closing(1003, ""), 1003, ""},
		"1007":                       {closing(1007, ""), 1007, ""},
		"1011":                       {closing(1011, ""), 1011, ""},
		"for libraries":              {closing(3000, ""), 3000, ""},
		"for applications":           {closing(4999, "x"), 4999, ""},
		"half a code":                {"\x03", 1002, "a close code has two bytes"},
		"0":                          {closing(0, ""), 1002, "invalid close code"},
		"999":                        {closing(999, ""), 1002, "invalid close code"},
		"1004":                       {closing(1004, ""), 1002, "invalid close code"},
		"1005":                       {closing(1005, ""), 1002, "invalid close code"},
		"1006":                       {closing(1006, ""), 1002, "invalid close code"},
		"1015":                       {closing(1015, ""), 1002, "invalid close code"},
		"1016":                       {closing(1016, ""), 1002, "invalid close code"},
		"2999":                       {closing(2999, ""), 1002, "invalid close code"},
		"5000":                       {closing(5000, ""), 1002, "invalid close code"},
		"65535":                      {closing(65535, ""), 1002, "invalid close code"},
		"a reason that is not UTF-8": {closing(1000, "\xff"), 1007, "text must be valid UTF-8"},
	}
	n := serve(t, nil)
	for name, tt := range tests {
		c := n.dial("?mode=none")
		c.close(tt.payload)
		end := c.ends
		if tt.text != "" {
			end = c.endsAndHangsUp
		}
		if _, code, text := end(); code != tt.code || text != tt.text {
			t.Errorf("%s: answered with %d %q, want %d %q", name, code, text, tt.code, tt.text)
		}
	}
}

// A server closes the socket once both close frames are exchanged (RFC 6455, section 7.1.1):
// who waits for that must not wait for a timeout of ours.
func TestClosedConnectionsAreNotHeldOpen(t *testing.T) {
	n := serve(t, nil)
	late := time.After(patience)
	for i := range 50 {
		select {
		case <-late:
			t.Fatalf("only %d connections were closed after %v", i, patience)
		default:
		}
		c := n.dial("?mode=none")
		c.close("\x03\xe8")
		c.endsWith(1000, "")
	}
}

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

// Cases after the Autobahn test suite, sections 1 to 7.
func TestBrokenFramesEndTheConnection(t *testing.T) {
	frame := frameBytes
	text, binaryOp, ping := byte(opText), byte(opBinary), byte(opPing)
	header := func(b ...byte) []byte { return b }
	then := func(frames ...[]byte) (all []byte) {
		for _, f := range frames {
			all = append(all, f...)
		}
		return all
	}
	long := strings.Repeat("x", maxMessageBytes)
	const (
		reserved = "reserved bits are set"
		masked   = "frames from a client must be masked"
		unknown  = "unknown opcode"
		control  = "control frames carry at most 125 bytes"
		cut      = "control frames must not be fragmented"
		order    = "a message begins or goes on where it must not"
		tooBig   = "a message may have at most 65536 bytes"
		utf8     = "text must be valid UTF-8"
		onlyText = "only text messages are understood"
	)
	tests := map[string]struct {
		sent []byte
		code uint16
		text string
	}{
		"RSV1":                            {frame(finBit|0x40|text, "{}"), 1002, reserved},
		"RSV2":                            {frame(finBit|0x20|text, "{}"), 1002, reserved},
		"RSV3":                            {frame(finBit|0x10|text, "{}"), 1002, reserved},
		"all reserved bits on a ping":     {frame(finBit|0x70|ping, ""), 1002, reserved},
		"RSV1 on a close":                 {frame(finBit|0x40|byte(opClose), "\x03\xe8"), 1002, reserved},
		"unmasked text":                   {header(0x81, 2, '{', '}'), 1002, masked},
		"unmasked ping":                   {header(0x89, 0), 1002, masked},
		"unmasked close":                  {header(0x88, 2, 3, 0xe8), 1002, masked},
		"opcode 3":                        {frame(finBit|3, ""), 1002, unknown},
		"opcode 4":                        {frame(finBit|4, "x"), 1002, unknown},
		"opcode 5":                        {frame(finBit|5, ""), 1002, unknown},
		"opcode 6":                        {frame(finBit|6, ""), 1002, unknown},
		"opcode 7":                        {frame(finBit|7, ""), 1002, unknown},
		"opcode 11":                       {frame(finBit|11, ""), 1002, unknown},
		"opcode 12":                       {frame(finBit|12, "x"), 1002, unknown},
		"opcode 13":                       {frame(finBit|13, ""), 1002, unknown},
		"opcode 14":                       {frame(finBit|14, ""), 1002, unknown},
		"opcode 15":                       {frame(finBit|15, ""), 1002, unknown},
		"a ping of 126 bytes":             {frame(finBit|ping, long[:126]), 1002, control},
		"a pong of 126 bytes":             {frame(finBit|byte(opPong), long[:126]), 1002, control},
		"a close of 126 bytes":            {frame(finBit|byte(opClose), "\x03\xe8"+long[:124]), 1002, control},
		"a ping of 64 KiB":                {frame(finBit|ping, long), 1002, control},
		"a fragmented ping":               {frame(ping, "a"), 1002, cut},
		"a fragmented pong":               {frame(byte(opPong), ""), 1002, cut},
		"a fragmented close":              {frame(byte(opClose), "\x03\xe8"), 1002, cut},
		"a continuation of nothing":       {frame(finBit, "{}"), 1002, order},
		"an open continuation of nothing": {frame(0, "{}"), 1002, order},
		"a continuation after the end":    {then(frame(text, `{"type":`), frame(finBit, `"x"}`), frame(finBit, "x")), 1002, order},
		"text inside a message":           {then(frame(text, "{"), frame(finBit|text, "}")), 1002, order},
		"open text inside a message":      {then(frame(text, "{"), frame(text, "}")), 1002, order},
		"binary inside a message":         {then(frame(text, "{"), frame(finBit|binaryOp, "}")), 1002, order},
		"binary":                          {frame(finBit|binaryOp, `{"type":"ping"}`), 1003, onlyText},
		"empty binary":                    {frame(finBit|binaryOp, ""), 1003, onlyText},
		"open binary":                     {frame(binaryOp, "x"), 1003, onlyText},
		"binary of 64 KiB and one":        {frame(finBit|binaryOp, long+"x"), 1003, onlyText},
		"not UTF-8":                       {frame(finBit|text, "\xce\xba\xe1\xbd\xb9\xcf\x83\xce\xbc\xce\xb5\xed\xa0\x80"), 1007, utf8},
		"an overlong form":                {frame(finBit|text, "{\"type\":\"\xc0\xaf\"}"), 1007, utf8},
		"past the last code point":        {frame(finBit|text, "\xf4\x90\x80\x80"), 1007, utf8},
		"half a character":                {frame(finBit|text, "{}\xe2\x82"), 1007, utf8},
		"half a character in two frames":  {then(frame(text, "{}\xe2"), frame(finBit, "\x82")), 1007, utf8},
		"a byte order mark of UTF-16":     {frame(finBit|text, "\xff\xfe{\x00}\x00"), 1007, utf8},
		"64 KiB and one":                  {frame(finBit|text, long+"x"), 1009, tooBig},
		"64 KiB and one in two frames":    {then(frame(text, long), frame(finBit, "x")), 1009, tooBig},
		"64 KiB and one in many frames":   {then(frame(text, long[:30000]), frame(0, long[:30000]), frame(0, ""), frame(0, long[:5536]), frame(0, "x")), 1009, tooBig},
		"a promise of 2^63-1 bytes":       {header(0x81, 0xff, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0), 1009, tooBig},
		"a promise of 2^64-1 bytes":       {header(0x81, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0), 1009, tooBig},
		"a continuation of 2^64-1 bytes":  {then(frame(text, "x"), header(0x80, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0)), 1009, tooBig},
		"a bad frame behind a good one":   {then(frame(finBit|ping, ""), frame(finBit|3, "")), 1002, unknown},
		"a bad frame with more behind":    {then(frame(finBit|3, ""), frame(finBit|text, long), frame(finBit|text, long)), 1002, unknown},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			n := serve(t, nil)
			c, other := n.dial("?mode=none"), n.dial("")
			c.raw(tt.sent)
			before, code, text := c.endsAndHangsUp()
			if len(before) > 1 || code != tt.code || text != tt.text {
				t.Errorf("ended with %d %q after %q, want %d %q", code, text, before, tt.code, tt.text)
			}
			n.script.block(1, account(1, 1, programA))
			other.expect(literalFrame(account(1, 1, programA), 1))
		})
	}
}

// endsAndHangsUp is ends for a client that does not wait for the server to hang up first:
// after a broken frame the server reads on for a moment.
func (c *client) endsAndHangsUp() (before []string, code uint16, text string) {
	c.Helper()
	for {
		op, payload, err := c.read()
		if err != nil {
			c.Fatalf("the connection ended without a close frame: %v", err)
		}
		switch op {
		case opText:
			before = append(before, payload)
		case opClose:
			if len(payload) < 2 {
				c.Fatalf("close frame %q", payload)
			}
			_ = c.conn.Close()
			return before, binary.BigEndian.Uint16([]byte(payload)), payload[2:]
		}
	}
}

func TestFragmentsMakeAMessage(t *testing.T) {
	n := serve(t, nil)
	n.script.block(1)
	message := `{"type":"subscribe","id":"` + "ä€𝄞" + `","pubkeys":` + list(key(1)) + `}`
	want := `{"type":"subscribed","id":"ä€𝄞","pubkeys":1,"programs":0,"slot":1,"seq":0}`
	for _, size := range []int{1 << 20, 100, 33, 7, 5} {
		var sent []byte
		for first, rest := byte(opText), message; rest != ""; first = 0 {
			n := min(size, len(rest))
			if n == len(rest) {
				first |= finBit
			}
			sent = append(sent, frameBytes(first, rest[:n])...)
			rest = rest[n:]
		}
		c := n.dial("?mode=none")
		c.raw(sent)
		c.expect(want)
	}
	// Empty fragments, control frames between, and a socket that brings every byte alone.
	c := n.dial("?mode=none")
	sent := append(frameBytes(byte(opText), ""), frameBytes(finBit|byte(opPing), "between")...)
	sent = append(append(sent, frameBytes(0, message[:50])...), frameBytes(finBit|byte(opPong), "")...)
	sent = append(append(sent, frameBytes(0, "")...), frameBytes(finBit, message[50:])...)
	for i := range sent {
		c.raw(sent[i : i+1])
	}
	if op, payload, err := c.read(); op != opPong || payload != "between" || err != nil {
		t.Errorf("opcode %#x, payload %q, err %v, want the pong", op, payload, err)
	}
	c.expect(want)
}

func TestTheLargestMessage(t *testing.T) {
	n := serve(t, nil)
	c := n.dial("?mode=none")
	message := `{"type":"unsubscribe","id":7,"all":true}`
	c.send("%s", message+strings.Repeat(" ", maxMessageBytes-len(message)))
	c.expect(`{"type":"unsubscribed","id":7,"pubkeys":0,"programs":0}`)
	c.quiet() // the limit is one of each message, not of all
	c.send("%s", message+strings.Repeat(" ", maxMessageBytes-len(message)))
	c.expect(`{"type":"unsubscribed","id":7,"pubkeys":0,"programs":0}`)
}

func TestPingsAreAnsweredInOrder(t *testing.T) {
	n := serve(t, nil)
	c := n.dial("?mode=none")
	payloads := []string{"", "x", "\x00\xff\xfe", strings.Repeat("p", maxControlBytes)}
	for _, p := range payloads {
		c.raw(frameBytes(finBit|byte(opPing), p))
	}
	for _, p := range payloads {
		if op, got, err := c.read(); op != opPong || got != p || err != nil {
			t.Fatalf("opcode %#x, payload %q, err %v, want a pong of %q", op, got, err, p)
		}
	}
}

func TestFloodsExceedTheBudget(t *testing.T) {
	tests := map[string][]byte{
		"pings":           frameBytes(finBit|byte(opPing), "x"),
		"pongs":           frameBytes(finBit|byte(opPong), ""),
		"messages":        frameBytes(finBit|byte(opText), `{"type":"ping"}`),
		"bad messages":    frameBytes(finBit|byte(opText), `x`),
		"subscribes":      frameBytes(finBit|byte(opText), `{"type":"subscribe","pubkeys":`+list(key(1))+`}`),
		"empty fragments": frameBytes(0, ""),
	}
	for name, frame := range tests {
		t.Run(name, func(t *testing.T) {
			n := serve(t, nil)
			c, other := n.dial("?mode=none"), n.dial("")
			if name == "empty fragments" {
				c.raw(frameBytes(byte(opText), "{"))
			}
			for range 3 * budgetBurst {
				if _, err := c.conn.Write(frame); err != nil {
					break // refused while we still wrote
				}
			}
			if _, code, text := c.endsAndHangsUp(); code != 1008 || text != "too many messages" {
				t.Errorf("ended with %d %q, want 1008 too many messages", code, text)
			}
			n.script.block(1, account(1, 1, programA))
			other.expect(literalFrame(account(1, 1, programA), 1))
		})
	}
}

func TestBudget(t *testing.T) {
	var b budget
	now := time.Now()
	spend := func() (n int) {
		for b.take(now) {
			n++
		}
		return n
	}
	for _, tt := range []struct {
		after time.Duration
		want  int
	}{{0, budgetBurst}, {0, 0}, {time.Second, budgetPerSecond}, {100 * time.Millisecond, 2}, {time.Hour, budgetBurst}} {
		now = now.Add(tt.after)
		if got := spend(); got != tt.want {
			t.Errorf("after %v: %d frames, want %d", tt.after, got, tt.want)
		}
	}
}

// A peer cannot keep a connection that has ended: it goes on sending and is not read.
func TestEndedConnectionsEndHoweverMuchIsSent(t *testing.T) {
	n := serve(t, nil)
	c := n.dial("?mode=none")
	c.raw(frameBytes(finBit|byte(opBinary), "x"))
	flood := frameBytes(finBit|byte(opPing), "still here")
	for end := time.Now().Add(patience); ; {
		if _, err := c.conn.Write(flood); err != nil {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("still written to %v after the end", patience)
		}
	}
	eventually(t, "the connection is gone", func() bool { return n.hub.meters.connections.Get() == 0 })
}

func TestTooManyKeysEndTheConnection(t *testing.T) {
	n := serve(t, nil)
	for _, names := range []string{"pubkeys", "programs"} {
		c := n.dial("?mode=none")
		const batch = 1000
		for i := range maxKeys / batch {
			keys := make([]ledger.Pubkey, batch)
			for j := range keys {
				keys[j] = key(i*batch + j)
			}
			c.send(`{"type":"subscribe","%s":%s}`, names, list(keys...))
			c.next()
		}
		c.send(`{"type":"subscribe","id":1,"pubkeys":%s}`, list(key(1)))
		if names == "pubkeys" { // not one more
			c.expect(`{"type":"subscribed","id":1,"pubkeys":10000,"programs":0,"slot":0,"seq":0}`)
			c.send(`{"type":"subscribe","id":1,"pubkeys":%s}`, list(key(maxKeys)))
		}
		c.endsWith(1008, "more than 10000 keys")
	}
	eventually(t, "the index is empty", func() bool {
		n.hub.mu.Lock()
		defer n.hub.mu.Unlock()
		a := &n.hub.levels[ledger.Processed]
		return len(a.pubkeys)+len(a.programs)+len(a.all)+len(a.walked) == 0
	})
}

func TestShutdownEndsEverybody(t *testing.T) {
	n := serve(t, nil)
	clients := []*client{n.dial(""), n.dial("?extended=true"), n.dial("?mode=none"), n.dial("?commitment=finalized")}
	n.script.block(1, account(1, 1, programA))
	n.script.block(2, account(1, 2, programA))
	done := make(chan error, 1)
	go func() { done <- n.hub.Shutdown(context.Background()) }()
	for i, c := range clients {
		before, code, text := c.ends()
		if want := []int{2, 4, 0, 1}[i]; len(before) != want || code != 1001 || text != "the server is shutting down" {
			t.Errorf("client %d: ended with %d %q after %q, want 1001 after %d frames", i, code, text, before, want)
		}
	}
	if err := <-done; err != nil {
		t.Errorf("Shutdown: %v", err)
	}
	_, late := n.handshake("")
	if _, code, text := late.endsAndHangsUp(); code != 1001 || text != "the server is shutting down" {
		t.Errorf("who comes late: ended with %d %q, want 1001", code, text)
	}
	n.script.block(3, account(1, 3, programA)) // nobody hears it
	if got := n.hub.meters.connections.Get(); got != 0 {
		t.Errorf("%d connections are left", got)
	}
}

func TestShutdownCutsOffWhoDoesNotAnswer(t *testing.T) {
	n := serve(t, nil)
	n.dial("?mode=none") // never answers the close frame
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := n.hub.Shutdown(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Shutdown: err = %v, want canceled", err)
	}
	if got := n.hub.meters.connections.Get(); got != 0 {
		t.Errorf("%d connections are left", got)
	}
}

// A client that stays within its budget and does not answer the close frame.
func TestShutdownDoesNotWaitForWhoGoesOnTalking(t *testing.T) {
	n := serve(t, nil)
	c := n.dial("?mode=none")
	talking := make(chan struct{})
	go func() {
		defer close(talking)
		pauses := time.NewTicker(50 * time.Millisecond) // slower than the budget fills
		defer pauses.Stop()
		for range pauses.C {
			if _, err := c.conn.Write(frameBytes(finBit|byte(opPing), "")); err != nil {
				return
			}
		}
	}()
	ctx, cancel := context.WithTimeout(context.Background(), patience/2)
	defer cancel()
	if err := n.hub.Shutdown(ctx); err != nil {
		t.Errorf("Shutdown: %v", err)
	}
	<-talking
}

func TestPanicsEndOnlyTheirConnection(t *testing.T) {
	log, text := newLog()
	n := serve(t, func(c *Config) { c.Logger = log })
	n.script.block(1, account(1, 1, programA))
	n.ledger.asked = func() error { panic("a fault") }
	c, other := n.dial("?mode=none"), n.dial("")
	c.send(`{"type":"subscribe","snapshot":true,"pubkeys":%s}`, list(key(1)))
	if before, code, text := c.endsAndHangsUp(); len(before) > 0 || code != 1011 || text != "internal error" {
		t.Errorf("ended with %d %q after %q, want 1011 internal error", code, text, before)
	}
	n.script.block(2, account(1, 2, programA))
	other.expect(literalFrame(account(1, 2, programA), 2))
	if got := n.hub.meters.panics.Get(); got != 1 {
		t.Errorf("%d panics counted, want 1", got)
	}
	if !strings.Contains(text.String(), "panic in a WebSocket connection") || !strings.Contains(text.String(), "a fault") {
		t.Errorf("log says %q", text)
	}
}

func TestPanicsOfTheWriterEndOnlyTheirConnection(t *testing.T) {
	n := serve(t, nil)
	near, far := net.Pipe()
	defer func() { _ = far.Close() }()
	other := n.dial("")
	place, err := n.hub.seats.take(other.address(), false, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		n.hub.serve(faultyConn{near}, place, connect{wants: wants{everything: true}})
	}()
	eventually(t, "it is subscribed", func() bool { return n.hub.meters.connections.Get() == 2 })
	n.script.block(1, account(1, 1, programA))
	<-done
	other.expect(literalFrame(account(1, 1, programA), 1))
	if got := n.hub.meters.panics.Get(); got != 1 {
		t.Errorf("%d panics counted, want 1", got)
	}
}

// faultyConn panics when it is written to.
type faultyConn struct{ net.Conn }

func (faultyConn) Write([]byte) (int, error) { panic("a fault") }

// The dialer of a common library speaks with us too.
func TestACommonClientLibrary(t *testing.T) {
	n := serve(t, nil)
	conn, response, err := websocket.DefaultDialer.Dial("ws://"+n.ln.Addr().String()+"/api/ws/accounts?mode=none", nil)
	if err != nil {
		t.Fatalf("dial: %v", err)
	}
	defer func() { _ = conn.Close() }()
	_ = response.Body.Close()
	if err := conn.WriteJSON(map[string]any{"type": "subscribe", "id": 1}); err != nil {
		t.Fatal(err)
	}
	if _, got, err := conn.ReadMessage(); err != nil || string(got) != `{"type":"subscribed","id":1,"pubkeys":0,"programs":0,"slot":0,"seq":0}` {
		t.Fatalf("got %s, %v", got, err)
	}
	n.script.block(1, account(1, 1, programA))
	if _, got, err := conn.ReadMessage(); err != nil || string(got) != literalFrame(account(1, 1, programA), 1) {
		t.Fatalf("got %s, %v", got, err)
	}
	bye := websocket.FormatCloseMessage(websocket.CloseNormalClosure, "bye")
	if err := conn.WriteControl(websocket.CloseMessage, bye, time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	if _, _, err := conn.ReadMessage(); !websocket.IsCloseError(err, websocket.CloseNormalClosure) {
		t.Errorf("err = %v, want the close frame back", err)
	}
}

// Clients that vanish leave nothing, whatever they were in the middle of.
func TestVanishedClientsLeaveNothing(t *testing.T) {
	n := serve(t, nil)
	n.script.block(1)
	whole := frameBytes(finBit|byte(opText), `{"type":"subscribe","pubkeys":`+list(key(1))+`}`)
	for cut := range len(whole) {
		c := n.dial("")
		c.raw(whole[:cut])
		_ = c.conn.Close()
	}
	eventually(t, "all are gone", func() bool {
		n.hub.mu.Lock()
		defer n.hub.mu.Unlock()
		return len(n.hub.levels[ledger.Processed].all) == 0
	})
	eventually(t, "all seats are free", func() bool {
		n.hub.seats.mu.Lock()
		defer n.hub.seats.mu.Unlock()
		return n.hub.seats.taken == 0 && len(n.hub.seats.clients) == 0
	})
}

func TestEndsAreCountedByReason(t *testing.T) {
	n := serve(t, nil)
	for reason, frame := range map[string][]byte{
		"client":   frameBytes(finBit|byte(opClose), ""),
		"binary":   frameBytes(finBit|byte(opBinary), ""),
		"utf8":     frameBytes(finBit|byte(opText), "\xff"),
		"protocol": frameBytes(finBit|3, ""),
		"too_big":  frameBytes(finBit|byte(opText), strings.Repeat("x", maxMessageBytes+1)),
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
