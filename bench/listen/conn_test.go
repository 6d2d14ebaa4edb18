package listen

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fasthttp/websocket"
)

// serve runs another implementation's server; serving is called for each connection.
func serve(t *testing.T, serving func(*websocket.Conn)) (address string) {
	t.Helper()
	var upgrader websocket.Upgrader
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, err := upgrader.Upgrade(w, r, nil)
		if err != nil {
			t.Errorf("the handshake is not accepted: %v", err)
			return
		}
		defer conn.Close()
		serving(conn)
	}))
	t.Cleanup(server.Close)
	return "ws" + strings.TrimPrefix(server.URL, "http") + "/api/ws/accounts?mode=none"
}

func dial(t *testing.T, address string, o Options) *Conn {
	t.Helper()
	c, err := Dial(t.Context(), address, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if err := c.NetConn().SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	return c
}

// sizes of payloads: around the bounds of the header's forms, and longer than any read.
var sizes = []int{0, 1, 125, 126, 127, 200, 65535, 65536, 200_000, 3}

func payload(n int) []byte { return bytes.Repeat([]byte{'a' + byte(n%26)}, n) }

// serveSizes sends texts with pings between them, wants the pongs, and closes.
func serveSizes(t *testing.T) (address string) {
	return serve(t, func(conn *websocket.Conn) {
		var pongs []string
		conn.SetPongHandler(func(data string) error {
			pongs = append(pongs, data)
			return nil
		})
		for i, n := range sizes {
			if err := conn.WriteMessage(websocket.TextMessage, payload(n)); err != nil {
				t.Errorf("text %d: %v", i, err)
			}
			if err := conn.WriteControl(websocket.PingMessage, fmt.Append(nil, "ping", i), time.Now().Add(patience)); err != nil {
				t.Errorf("ping %d: %v", i, err)
			}
		}
		goodbye := websocket.FormatCloseMessage(4008, "slow consumer")
		if err := conn.WriteControl(websocket.CloseMessage, goodbye, time.Now().Add(patience)); err != nil {
			t.Errorf("close: %v", err)
		}
		_, _, err := conn.ReadMessage()
		if closed := new(websocket.CloseError); !errors.As(err, &closed) || closed.Code != 4008 {
			t.Errorf("the answer to the close frame: %v", err)
		}
		for i := range sizes {
			if i >= len(pongs) || pongs[i] != fmt.Sprint("ping", i) {
				t.Errorf("pongs %q, want one for each of %d pings", pongs, len(sizes))
				break
			}
		}
	})
}

func wantClosed(t *testing.T, err error) {
	t.Helper()
	if closed := new(CloseError); !errors.As(err, &closed) || closed.Code != 4008 || closed.Reason != "slow consumer" {
		t.Errorf("at the end: err = %v, want the close frame", err)
	}
}

func TestNextReturnsEveryFrameAndAnswersPings(t *testing.T) {
	t.Parallel()
	c := dial(t, serveSizes(t), Options{})
	for _, n := range sizes {
		f, err := c.Next()
		if err != nil || f.Op != OpText || !bytes.Equal(f.Payload, payload(n)) {
			t.Fatalf("got op %d and %d bytes, %v; want a text of %d", f.Op, len(f.Payload), err, n)
		}
	}
	_, err := c.Next()
	wantClosed(t, err)
}

func TestDrainHandsOverWholeFramesAndAnswersPings(t *testing.T) {
	t.Parallel()
	c := dial(t, serveSizes(t), Options{})
	if f, err := c.Next(); err != nil || len(f.Payload) != sizes[0] { // both ways of reading go together
		t.Fatal(f, err)
	}
	var got []int
	err := c.Drain(func(batch Batch) {
		before := len(got)
		batch.Each(func(p []byte) {
			got = append(got, len(p))
			if !bytes.Equal(p, payload(len(p))) {
				t.Errorf("a frame of %d bytes holds something else", len(p))
			}
		})
		if len(got)-before != batch.Frames {
			t.Errorf("a batch of %d frames is said to have %d", len(got)-before, batch.Frames)
		}
	})
	wantClosed(t, err)
	if !slices.Equal(got, sizes[1:]) {
		t.Errorf("got payloads of %d bytes, want %d", got, sizes[1:])
	}
}

// Frames are whole however the bytes come.
func TestFramesMayComeByteByByte(t *testing.T) {
	t.Parallel()
	server, client := net.Pipe()
	defer client.Close()
	go func() {
		defer server.Close()
		for _, n := range []int{0, 125, 126, 300} {
			for _, b := range frame(finBit|OpText, payload(n)) {
				if _, err := server.Write([]byte{b}); err != nil {
					t.Error(err)
				}
			}
		}
	}()
	var got []int
	err := New(client).Drain(func(batch Batch) {
		batch.Each(func(p []byte) { got = append(got, len(p)) })
	})
	if !errors.Is(err, io.EOF) || !slices.Equal(got, []int{0, 125, 126, 300}) {
		t.Errorf("got payloads of %d bytes, and %v", got, err)
	}
}

// frame returns a frame as a server sends it.
func frame(first byte, payload []byte) []byte {
	b := []byte{first, byte(len(payload))}
	if len(payload) > 125 {
		b = binary.BigEndian.AppendUint16([]byte{first, 126}, uint16(len(payload)))
	}
	return append(b, payload...)
}

func TestBreachesOfTheProtocolAreErrors(t *testing.T) {
	t.Parallel()
	masked := frame(finBit|OpText, payload(9))
	masked[1] |= maskBit
	tests := map[string]struct {
		sent []byte
		want string
	}{
		"a masked frame":         {masked, "masked"},
		"a compressed frame":     {frame(finBit|0x40|OpText, nil), "reserved bits"},
		"a first fragment":       {frame(OpText, nil), "fragments"},
		"a last fragment":        {frame(finBit, nil), "fragments"},
		"a frame of 2^40 bytes":  {[]byte{finBit | OpText, 127, 0, 0, 1, 0, 0, 0, 0, 0}, "too long"},
		"a long ping":            {frame(finBit|OpPing, payload(126)), "too long"},
		"half a code of a close": {frame(finBit|OpClose, payload(1)), "malformed"},
		"the end inside a frame": {frame(finBit|OpText, payload(99))[:50], "EOF"},
	}
	for name, tt := range tests {
		for _, drains := range []bool{false, true} {
			server, client := net.Pipe()
			go func() {
				_, _ = server.Write(tt.sent) // the client need not read all of it
				server.Close()
			}()
			var err error
			if c := New(client); drains {
				err = c.Drain(func(Batch) { t.Errorf("%s: frames are handed over", name) })
			} else {
				_, err = c.Next()
			}
			client.Close()
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%s, drained %v: err = %v, want %q", name, drains, err, tt.want)
			}
		}
	}
}

func TestTextsReachTheServer(t *testing.T) {
	t.Parallel()
	got := make(chan int)
	c := dial(t, serve(t, func(conn *websocket.Conn) {
		for {
			_, p, err := conn.ReadMessage()
			if err != nil {
				if closed := new(websocket.CloseError); !errors.As(err, &closed) || closed.Code != 1000 {
					t.Errorf("the client ends with %v", err)
				}
				close(got)
				return
			}
			if !bytes.Equal(p, payload(len(p))) {
				t.Errorf("a text of %d bytes holds something else", len(p))
			}
			got <- len(p)
		}
	}), Options{})
	for _, n := range sizes {
		if err := c.WriteText(payload(n)); err != nil {
			t.Fatal(err)
		}
		if g := <-got; g != n {
			t.Errorf("the server got %d bytes, want %d", g, n)
		}
	}
	c.Close()
	<-got
	if _, err := c.Next(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("reading after Close: %v", err)
	}
}

func TestRefusalIsTold(t *testing.T) {
	t.Parallel()
	const body = `{"error":"Service unavailable","details":"the server is full"}`
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/api/ws/accounts" || r.URL.RawQuery != "pubkeys=a,b" {
			t.Errorf("asked for %s", r.URL)
		}
		w.WriteHeader(http.StatusServiceUnavailable)
		fmt.Fprint(w, body)
	}))
	defer server.Close()
	_, err := Dial(t.Context(), "ws"+strings.TrimPrefix(server.URL, "http")+"/api/ws/accounts?pubkeys=a,b", Options{})
	if refused := new(RefusedError); !errors.As(err, &refused) || refused.Status != 503 || !strings.HasSuffix(err.Error(), "503: the server is full") {
		t.Errorf("err = %v", err)
	}
}

func TestDialGivesUpOnSilentServer(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	address := "ws://" + silent.Addr().String() + "/"
	if _, err := Dial(t.Context(), address, Options{Timeout: time.Millisecond}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("after the timeout: err = %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Dial(ctx, address, Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("with an ended context: err = %v", err)
	}
	if _, err := Dial(t.Context(), "http://127.0.0.1/", Options{}); err == nil {
		t.Error("http:// is dialled")
	}
}
