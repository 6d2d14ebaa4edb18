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
	"net/netip"
	"sync"
	"time"

	"github.com/fasthttp/websocket"
)

// Options say how to connect. The zero value works.
type Options struct {
	Local      netip.Addr    // the address to come from; zero: any
	Timeout    time.Duration // of connecting and of the handshake; 0: 10 s
	ReadBuffer int           // the most bytes that one call of the kernel reads; 0: 4 KiB
}

const defaultTimeout = 10 * time.Second

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
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(o.Timeout, defaultTimeout))
	defer cancel()
	stop := func() bool { return true }
	dialer := websocket.Dialer{ReadBufferSize: o.ReadBuffer, WriteBufferPool: &writeBuffers}
	dialer.NetDialContext = func(_ context.Context, network, host string) (net.Conn, error) {
		var d net.Dialer
		if o.Local.IsValid() {
			d.LocalAddr = net.TCPAddrFromAddrPort(netip.AddrPortFrom(o.Local, 0))
		}
		socket, err := d.DialContext(ctx, network, host)
		if err != nil {
			return nil, err
		}
		stop = context.AfterFunc(ctx, func() { _ = socket.Close() }) // the handshake does not know that a context ends
		return socket, err
	}
	ws, response, err := dialer.Dial(address, nil)
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
