package listen

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/fasthttp/websocket"

	"ledgerd/bench/dial"
)

// Options say how to connect. The zero value works.
type Options struct {
	Dial       dial.Dialer
	Index      int         // of the connection among those of the dialer
	Header     http.Header // sent with the handshake
	ReadBuffer int         // the most bytes that one call of the kernel reads; 0: 4 KiB
	Throttle   int         // the most bytes that are read in a second; 0: as many as come
}

const defaultTimeout = 10 * time.Second // as a dialer's

// writeBuffers are those of all conns, each of which writes seldom.
var writeBuffers sync.Pool

// RefusedError is the answer of a server that did not upgrade the connection.
type RefusedError struct {
	Status int
	Body   string // the first of it
}

// Error returns the status and what the body says, if that is an error of ledgerd's.
func (e *RefusedError) Error() string {
	var told struct{ Error, Details string }
	_ = json.Unmarshal([]byte(e.Body), &told) // else the body itself is all there is
	return fmt.Sprintf("the upgrade was refused with %d: %s", e.Status, cmp.Or(told.Details, told.Error, e.Body))
}

// Dial connects to an address such as ws://127.0.0.1:8080/api/ws/accounts?mode=none. It returns a *RefusedError if the
// server answers anything but the upgrade.
func Dial(ctx context.Context, address string, o Options) (*Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(o.Dial.Timeout, defaultTimeout))
	defer cancel()
	stop := func() bool { return true }
	dialer := websocket.Dialer{ReadBufferSize: o.ReadBuffer, WriteBufferPool: &writeBuffers}
	dialer.NetDialContext = func(_ context.Context, _, host string) (net.Conn, error) {
		socket, err := o.Dial.Dial(ctx, o.Index, host)
		if err != nil {
			return nil, err
		}
		stop = context.AfterFunc(ctx, func() { _ = socket.Close() }) // the handshake does not know that a context ends
		if o.Throttle > 0 {
			socket = &throttled{socket, o.Throttle}
		}
		return socket, err
	}
	dialer.NetDialTLSContext = dialer.NetDialContext
	ws, response, err := dialer.Dial(address, o.Header)
	switch {
	case !stop() || err != nil && ctx.Err() != nil:
		err = ctx.Err()
	// A 101 that does not complete the handshake is an error, and no refusal.
	case errors.Is(err, websocket.ErrBadHandshake) && response.StatusCode != http.StatusSwitchingProtocols:
		body, _ := io.ReadAll(response.Body) // the first of it, from memory
		err = &RefusedError{response.StatusCode, string(body)}
	}
	if err != nil {
		return nil, fmt.Errorf("cannot connect to %s: %w", address, err)
	}
	return New(ws), nil
}

// throttled is a socket that is read slowly, as over a slow line or by a busy client. What waits at the server is all that the client has
// not read, but for what the kernels hold.
type throttled struct {
	net.Conn
	perSecond int
}

// Read reads a tenth of a second's bytes, and waits for as long as they may take.
func (t *throttled) Read(b []byte) (int, error) {
	n, err := t.Conn.Read(b[:min(len(b), max(1, t.perSecond/10))])
	time.Sleep(time.Duration(n) * time.Second / time.Duration(t.perSecond))
	return n, err
}
