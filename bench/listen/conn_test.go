package listen

import (
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
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

// Frames are counted with their headers, up to the server's close frame.
func TestNextReturnsEveryFrame(t *testing.T) {
	t.Parallel()
	headers := map[int]int{0: 2, 125: 2, 126: 4, 65535: 4, 65536: 10, 200_000: 10} // by the size of a payload
	sizes := slices.Sorted(maps.Keys(headers))
	payload := func(n int) []byte { return bytes.Repeat([]byte{'a'}, n) }
	c, err := Dial(t.Context(), serve(t, func(conn *websocket.Conn) {
		for _, n := range sizes {
			_ = conn.WriteMessage(websocket.TextMessage, payload(n)) // or the counts tell
		}
		_ = conn.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(4008, "slow consumer"), time.Now().Add(patience))
		_, _, _ = conn.ReadMessage() // the answer
	}), Options{})
	must(t, err)
	defer c.Close()
	for _, n := range sizes {
		p, err := c.Next()
		if err != nil || p.Frames != 1 || p.Bytes != headers[n]+n || !bytes.Equal(p.Payload, payload(n)) {
			t.Fatalf("got %d frames in %d bytes with %d of payload, %v; want a text of %d", p.Frames, p.Bytes, len(p.Payload), err, n)
		}
	}
	_, err = c.Next()
	if closed := new(websocket.CloseError); !errors.As(err, &closed) || closed.Code != 4008 || closed.Text != "slow consumer" {
		t.Errorf("at the end: err = %v, want the close frame", err)
	}
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
