package listen

import (
	"bufio"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha1"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"syscall"
	"time"
)

// Options say how to connect. The zero value works.
type Options struct {
	Local         netip.Addr    // the address to come from; zero: any
	Timeout       time.Duration // of connecting and of the handshake; 0: 10 s
	ReceiveBuffer int           // what the kernel holds for the reader (SO_RCVBUF), in bytes; 0: as it likes
}

const defaultTimeout = 10 * time.Second

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
	u, err := url.Parse(address)
	if err != nil {
		return nil, fmt.Errorf("cannot connect: %w", err)
	}
	if u.Scheme != "ws" {
		return nil, fmt.Errorf("cannot connect to %s: only ws:// is known", address)
	}
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(o.Timeout, defaultTimeout))
	defer cancel()
	dialer := net.Dialer{Control: o.control}
	if o.Local.IsValid() {
		dialer.LocalAddr = net.TCPAddrFromAddrPort(netip.AddrPortFrom(o.Local, 0))
	}
	socket, err := dialer.DialContext(ctx, "tcp", u.Host)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = context.DeadlineExceeded // the socket met it before the context did
	}
	if err != nil {
		return nil, fmt.Errorf("cannot connect: %w", err)
	}
	c := New(socket)
	stop := context.AfterFunc(ctx, func() { _ = socket.SetDeadline(time.Unix(1, 0)) })
	err = c.handshake(u)
	if !stop() { // the deadline stands, or will
		err = ctx.Err()
	}
	if err != nil {
		_ = socket.Close()
		return nil, fmt.Errorf("cannot connect to %s: %w", u.Host, err)
	}
	return c, nil
}

// control sets what must be set before the connection is made: the window that the peer is told follows from it.
func (o *Options) control(_, _ string, raw syscall.RawConn) error {
	if o.ReceiveBuffer == 0 {
		return nil
	}
	var failed error
	err := raw.Control(func(fd uintptr) {
		failed = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, o.ReceiveBuffer)
	})
	return errors.Join(err, failed)
}

// handshake asks for the upgrade and reads the answer. What came after it goes into the conn's buffer.
func (c *Conn) handshake(u *url.URL) error {
	var nonce [16]byte
	_, _ = rand.Read(nonce[:]) // never fails
	key := base64.StdEncoding.EncodeToString(nonce[:])
	request := fmt.Sprintf("GET %s HTTP/1.1\r\nHost: %s\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"+
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: %s\r\n\r\n", u.RequestURI(), u.Host, key)
	if _, err := io.WriteString(c.socket, request); err != nil {
		return err
	}
	in := bufio.NewReaderSize(c.socket, len(c.buf))
	response, err := http.ReadResponse(in, nil)
	if err != nil {
		return fmt.Errorf("the answer to the handshake is not one: %w", err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusSwitchingProtocols {
		const keptBytes = 1 << 10
		body, _ := io.ReadAll(io.LimitReader(response.Body, keptBytes)) // as far as it comes
		return &RefusedError{response.StatusCode, string(body)}
	}
	if response.Header.Get("Sec-WebSocket-Accept") != acceptance(key) {
		return errors.New("the server accepted another handshake than ours")
	}
	early, _ := in.Peek(in.Buffered()) // so many are there
	c.end = copy(c.buf, early)
	return nil
}

// acceptance is what a server must answer to a key: RFC 6455, section 4.2.2.
func acceptance(key string) string {
	sum := sha1.Sum([]byte(key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
	return base64.StdEncoding.EncodeToString(sum[:])
}
