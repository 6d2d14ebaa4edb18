package listen

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fasthttp/websocket"

	"ledgerd/bench/dial"
	"ledgerd/engine/ledger/ledgertest"
)

var must = ledgertest.Must

// serve runs another implementation's server; serving is called for each connection.
func serve(t *testing.T, serving func(*websocket.Conn)) (address string) {
	t.Helper()
	var upgrader websocket.Upgrader
	return serveHTTP(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, err := upgrader.Upgrade(w, r, nil)
		if err != nil {
			t.Errorf("the handshake is not accepted: %v", err)
			return
		}
		defer conn.Close()
		serving(conn)
	}))
}

func dialed(t *testing.T, address string, o Options) *Conn {
	t.Helper()
	c, err := Dial(t.Context(), address, o)
	must(t, err)
	t.Cleanup(func() { c.Close() })
	must(t, c.NetConn().SetReadDeadline(time.Now().Add(patience)))
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
			ledgertest.ErrorIs(t, conn.WriteMessage(websocket.TextMessage, payload(n)), nil, "text %d", i)
			ledgertest.ErrorIs(t, conn.WriteControl(websocket.PingMessage, fmt.Append(nil, "ping", i), time.Now().Add(patience)), nil, "ping %d", i)
		}
		goodbye := websocket.FormatCloseMessage(4008, "slow consumer")
		ledgertest.ErrorIs(t, conn.WriteControl(websocket.CloseMessage, goodbye, time.Now().Add(patience)), nil, "the close frame")
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

func TestNextReturnsEveryFrameAndAnswersPings(t *testing.T) {
	t.Parallel()
	c := dialed(t, serveSizes(t), Options{})
	for _, n := range sizes {
		p, err := c.Next()
		if err != nil || p.Frames != 1 || !bytes.Equal(p.Payload, payload(n)) {
			t.Fatalf("got %d frames of %d bytes, %v; want a text of %d", p.Frames, len(p.Payload), err, n)
		}
		header := 2
		if n > 65535 {
			header = 10
		} else if n > 125 {
			header = 4
		}
		ledgertest.Equal(t, p.Bytes, header+n, "a text of %d bytes is counted as", n)
	}
	_, err := c.Next()
	if closed := new(websocket.CloseError); !errors.As(err, &closed) || closed.Code != 4008 || closed.Text != "slow consumer" {
		t.Errorf("at the end: err = %v, want the close frame", err)
	}
}

// Of a stream that is only drained the bytes tell the frames, however they come.
func TestDrainedBytesTellTheFrames(t *testing.T) {
	t.Parallel()
	server, client := net.Pipe()
	go func() {
		defer server.Close()
		for _, n := range []int{1, 6, 7, 20, 1} { // 5 times 7 bytes, of which 7 are 2 frames
			_, _ = server.Write(payload(n)) // else the counts tell
		}
	}()
	stream := Drain(client, 2, 7)
	defer stream.Close()
	var got []int
	for {
		p, err := stream.Next()
		if err != nil {
			if !errors.Is(err, io.EOF) {
				t.Error(err)
			}
			break
		}
		if got = append(got, p.Frames); p.Payload != nil || p.Bytes == 0 {
			t.Errorf("got %+v", p)
		}
	}
	ledgertest.Equal(t, got, []int{0, 2, 2, 5, 1}, "the frames of each message")
}

func TestDialGivesUpOnSilentServer(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer silent.Close()
	address := "ws://" + silent.Addr().String() + "/"
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		if conn, err := silent.Accept(); err == nil { // which is that of the handshake
			defer conn.Close()
			_, _ = conn.Read(make([]byte, 1))
			cancel()
			_, _ = io.Copy(io.Discard, conn)
		}
	}()
	_, err = Dial(ctx, address, Options{Dial: dial.Dialer{Timeout: time.Hour}})
	ledgertest.ErrorIs(t, err, context.Canceled, "with a context that ends meanwhile")
	var late net.Error // of the context, or of a socket that is slower
	if _, err := Dial(t.Context(), address, Options{Dial: dial.Dialer{Timeout: time.Millisecond}}); !errors.As(err, &late) || !late.Timeout() {
		t.Errorf("after the timeout: err = %v", err)
	}
	if _, err := Dial(t.Context(), "http://127.0.0.1/", Options{}); err == nil {
		t.Error("http:// is dialled")
	}
}

// A throttled socket gives no more than its bytes a second, however much waits.
func TestThrottledSocketsReadSlowly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, client := net.Pipe()
		go func() {
			_, _ = server.Write(make([]byte, 1000)) // else the count tells
			_ = server.Close()
		}()
		begun := time.Now()
		n, err := io.Copy(io.Discard, &throttled{client, 100})
		if took := time.Since(begun); n != 1000 || err != nil || took != 10*time.Second {
			t.Errorf("%d bytes took %v, %v", n, took, err)
		}
	})
}
