package main

import (
	"bufio"
	"context"
	"crypto/rand"
	"crypto/sha1"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync"
	"syscall"
	"testing"
	"time"

	"ledgerd/bench/listen"
)

// talker is one connection of some kind of client. One goroutine reads it, any may say something.
type talker interface {
	// read returns the next text message, valid until the next read. The server's close frame
	// is a *listen.CloseError, anything else the end of the socket.
	read() ([]byte, error)
	say(text string) error
	stall(on bool) // while it is on nothing is read from the socket, and read is not called
	leave()        // as the protocol has it; what is still on its way may be read
	cut()          // without a word
	port() int     // of its own end
}

// dialer connects one kind of client. A small buffer is what the kernel holds for the reader, where
// that can be said.
type dialer func(address string, smallBuffer bool) (talker, error)

// smallBufferBytes makes a client that does not read a slow one soon.
const smallBufferBytes = 8 << 10

// ownTalker is the repository's own client.
type ownTalker struct{ *listen.Conn }

func dialOwn(address string, smallBuffer bool) (talker, error) {
	o := listen.Options{Timeout: patience}
	if smallBuffer {
		o.ReceiveBuffer = smallBufferBytes
	}
	conn, err := listen.Dial(context.Background(), address, o)
	if err != nil {
		return nil, err
	}
	return ownTalker{conn}, nil
}

func (o ownTalker) read() ([]byte, error) {
	if err := o.NetConn().SetReadDeadline(time.Now().Add(patience)); err != nil {
		return nil, err
	}
	p, err := o.Next()
	return p.Payload, err
}

func (o ownTalker) say(text string) error { return o.WriteText([]byte(text)) }
func (o ownTalker) stall(bool)            {}
func (o ownTalker) leave()                { _ = o.Close() }
func (o ownTalker) cut()                  { _ = o.NetConn().Close() }
func (o ownTalker) port() int             { return o.NetConn().LocalAddr().(*net.TCPAddr).Port }

// rawTalker is RFC 6455 by hand.
type rawTalker struct {
	net.Conn
	reader  *bufio.Reader
	payload []byte
	writing sync.Mutex
}

func dialRaw(address string, smallBuffer bool) (talker, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, err
	}
	d := net.Dialer{Timeout: patience}
	if smallBuffer {
		d.Control = func(_, _ string, raw syscall.RawConn) error {
			var failed error
			err := raw.Control(func(fd uintptr) {
				failed = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, smallBufferBytes)
			})
			return errors.Join(err, failed)
		}
	}
	conn, err := d.Dial("tcp", u.Host)
	if err != nil {
		return nil, err
	}
	r := &rawTalker{Conn: conn, reader: bufio.NewReaderSize(conn, 16<<10)}
	if err := r.shakeHands(u); err != nil {
		conn.Close()
		return nil, err
	}
	return r, nil
}

// shakeHands asks for the upgrade: RFC 6455, section 4.1.
func (r *rawTalker) shakeHands(u *url.URL) error {
	var nonce [16]byte
	if _, err := rand.Read(nonce[:]); err != nil {
		return err
	}
	key := base64.StdEncoding.EncodeToString(nonce[:])
	if err := r.SetDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	if _, err := fmt.Fprintf(r.Conn, "GET %s HTTP/1.1\r\nHost: %s\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"+
		"Sec-WebSocket-Key: %s\r\nSec-WebSocket-Version: 13\r\n\r\n", u.RequestURI(), u.Host, key); err != nil {
		return err
	}
	response, err := http.ReadResponse(r.reader, nil)
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusSwitchingProtocols {
		body, _ := io.ReadAll(io.LimitReader(response.Body, 1<<10))
		return &listen.RefusedError{Status: response.StatusCode, Body: string(body)}
	}
	sum := sha1.Sum([]byte(key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
	if got, want := response.Header.Get("Sec-WebSocket-Accept"), base64.StdEncoding.EncodeToString(sum[:]); got != want {
		return fmt.Errorf("Sec-WebSocket-Accept: %q, want %q", got, want)
	}
	return r.SetDeadline(time.Time{})
}

// read expects what the server sends: whole, unmasked frames with the shortest length there is.
func (r *rawTalker) read() ([]byte, error) {
	for {
		if err := r.SetReadDeadline(time.Now().Add(patience)); err != nil {
			return nil, err
		}
		var head [8]byte
		if _, err := io.ReadFull(r.reader, head[:2]); err != nil {
			return nil, err
		}
		op, length := head[0], uint64(head[1])
		switch {
		case head[1] == 126:
			if _, err := io.ReadFull(r.reader, head[:2]); err != nil {
				return nil, err
			}
			length = uint64(binary.BigEndian.Uint16(head[:]))
		case head[1] > 126:
			return nil, fmt.Errorf("a frame begins with %x: masked, or longer than any of ledgerd's", head[:2])
		}
		r.payload = append(r.payload[:0], make([]byte, length)...)
		if _, err := io.ReadFull(r.reader, r.payload); err != nil {
			return nil, err
		}
		switch op {
		case 0x81:
			return r.payload, nil
		case 0x88:
			end := &listen.CloseError{Code: 1005}
			if length >= 2 {
				end.Code, end.Reason = binary.BigEndian.Uint16(r.payload), string(r.payload[2:])
			}
			_ = r.write(0x88, r.payload[:min(length, 2)])
			return nil, end
		case 0x89:
			if err := r.write(0x8a, r.payload); err != nil {
				return nil, err
			}
		default:
			return nil, fmt.Errorf("a frame begins with %x", op)
		}
	}
}

// write sends a frame in one piece, masked.
func (r *rawTalker) write(op byte, payload []byte) error {
	mask := [4]byte{0xa5, 0x5a, 0x3c, 0xc3}
	b := []byte{op, 0x80 | byte(len(payload))}
	if len(payload) > 125 {
		b = binary.BigEndian.AppendUint16([]byte{op, 0x80 | 126}, uint16(len(payload)))
	}
	b = append(b, mask[:]...)
	for i, p := range payload {
		b = append(b, p^mask[i%4])
	}
	r.writing.Lock()
	defer r.writing.Unlock()
	if err := r.SetWriteDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	_, err := r.Write(b)
	return err
}

func (r *rawTalker) say(text string) error { return r.write(0x81, []byte(text)) }
func (r *rawTalker) stall(bool)            {}
func (r *rawTalker) leave()                { _ = r.write(0x88, []byte{0x03, 0xe8}) }
func (r *rawTalker) cut()                  { _ = r.Close() }
func (r *rawTalker) port() int             { return r.LocalAddr().(*net.TCPAddr).Port }

// kinds returns the kinds of clients, and why one of them is not there.
func kinds(t *testing.T) (dialers map[string]dialer, missing map[string]string) {
	dialers = map[string]dialer{"own": dialOwn, "raw": dialRaw}
	missing = map[string]string{}
	if b, why := newBridge(t); b != nil {
		dialers["ws"] = b.dial
	} else {
		missing["ws"] = why
	}
	return dialers, missing
}
