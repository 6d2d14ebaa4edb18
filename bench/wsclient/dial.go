package wsclient

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha1"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"syscall"
	"time"
)

// Options say how to connect. The zero value works.
type Options struct {
	Local         netip.Addr    // the address to come from; zero: any
	Timeout       time.Duration // of connecting and of the handshake; 0: 10 s
	ReceiveBuffer int           // what the kernel holds for the reader (SO_RCVBUF), in bytes; 0: as it likes
	ReadBytes     int           // the most that one call reads; 0: 64 KiB
}

// RefusedError is the answer of a server that did not upgrade the connection.
type RefusedError struct {
	Status int
	Body   string // the first of it
}

// Error says what the server answered.
func (e *RefusedError) Error() string {
	return fmt.Sprintf("the handshake was refused with %d: %s", e.Status, e.Body)
}

const (
	defaultTimeout   = 10 * time.Second
	defaultReadBytes = 64 << 10

	// firstReadBytes is what a conn begins with. One that hears little needs no more.
	firstReadBytes = 1 << 10
	// maxHeadBytes bounds the head of the answer to a handshake.
	maxHeadBytes = 16 << 10
	// maxRefusalBytes is how much of a refusal is kept.
	maxRefusalBytes = 1 << 10
)

// Dial connects to an address such as ws://127.0.0.1:8080/api/ws/accounts?mode=none. It
// returns a *RefusedError if the server answers anything but the upgrade.
func Dial(ctx context.Context, address string, o Options) (*Conn, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, fmt.Errorf("cannot connect: %w", err)
	}
	if u.Scheme != "ws" {
		return nil, fmt.Errorf("cannot connect to %s: only ws:// is known", address)
	}
	if o.Timeout == 0 {
		o.Timeout = defaultTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, o.Timeout)
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
	stop := context.AfterFunc(ctx, func() { _ = socket.SetDeadline(time.Unix(1, 0)) })
	c := New(socket, o.ReadBytes)
	if err := c.shakeHands(u); err != nil {
		stop()
		_ = socket.Close()
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return nil, fmt.Errorf("cannot connect to %s: %w", u.Host, err)
	}
	if !stop() { // the deadline stands, or will
		_ = socket.Close()
		return nil, fmt.Errorf("cannot connect to %s: %w", u.Host, ctx.Err())
	}
	return c, nil
}

// control sets what must be set before the connection is made: the window that the peer is
// told follows from it.
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

// shakeHands asks for the upgrade and reads the answer. What came behind it stays in the
// conn's buffer.
func (c *Conn) shakeHands(u *url.URL) error {
	var nonce [16]byte
	_, _ = rand.Read(nonce[:]) // never fails
	key := base64.StdEncoding.EncodeToString(nonce[:])
	request := fmt.Sprintf("GET %s HTTP/1.1\r\nHost: %s\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"+
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: %s\r\n\r\n", u.RequestURI(), u.Host, key)
	if _, err := io.WriteString(c.socket, request); err != nil {
		return err
	}
	end := 0
	for end == 0 {
		if c.end >= maxHeadBytes {
			return errors.New("the answer to the handshake is too long")
		}
		if err := c.fill(); err != nil {
			return err
		}
		if i := bytes.Index(c.waiting(), []byte("\r\n\r\n")); i >= 0 {
			end = i + 4
		}
	}
	head := string(c.waiting()[:end])
	c.start += end
	status, header, err := parseHead(head)
	switch {
	case err != nil:
		return err
	case status != http.StatusSwitchingProtocols:
		return &RefusedError{status, c.refusal(header)}
	case header["sec-websocket-accept"] != acceptance(key):
		return errors.New("the server accepted another handshake than ours")
	}
	return nil
}

// parseHead takes an HTTP answer's head apart; the names of fields are in lower case.
func parseHead(head string) (status int, header map[string]string, err error) {
	lines := strings.Split(strings.TrimSuffix(head, "\r\n\r\n"), "\r\n")
	if _, err := fmt.Sscanf(lines[0], "HTTP/1.1 %d", &status); err != nil {
		return 0, nil, fmt.Errorf("the answer to the handshake begins with %.40q", lines[0])
	}
	header = make(map[string]string, len(lines))
	for _, line := range lines[1:] {
		name, value, _ := strings.Cut(line, ":")
		header[strings.ToLower(name)] = strings.TrimSpace(value)
	}
	return status, header, nil
}

// refusal reads the body behind a refusal, as far as its length is stated and it comes.
func (c *Conn) refusal(header map[string]string) string {
	var length int
	if _, err := fmt.Sscan(header["content-length"], &length); err != nil {
		return ""
	}
	length = min(length, maxRefusalBytes)
	for len(c.waiting()) < length {
		if c.fill() != nil {
			break
		}
	}
	return string(c.waiting()[:min(length, len(c.waiting()))])
}

// acceptance is what a server must answer to a key: RFC 6455, section 4.2.2.
func acceptance(key string) string {
	sum := sha1.Sum([]byte(key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
	return base64.StdEncoding.EncodeToString(sum[:])
}
