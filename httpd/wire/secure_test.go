package wire

import (
	"bufio"
	"bytes"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"crypto/tls"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/valyala/fasthttp"
	"github.com/valyala/fasthttp/fasthttputil"

	"ledgerd/engine/ledger/bubbletest"
	"ledgerd/engine/ledger/ledgertest"
)

// certified has a certificate.
var certified = sync.OnceValue(func() *tls.Config {
	s := httptest.NewTLSServer(nil)
	s.Close()
	return s.TLS
})

// shakeHands encrypts a connection, whose other end it returns encrypted too.
func shakeHands(t *testing.T, c *Conn, far net.Conn) net.Conn {
	t.Helper()
	c.encrypt(certified())
	client := tls.Client(far, &tls.Config{InsecureSkipVerify: true})
	go func() { _, _ = client.Write([]byte("x")) }()
	_, err := c.Read(make([]byte, 10))
	must(t, err)
	return client
}

// records speaks TLS 1.3 to a server, and writes records of its own making.
type records struct {
	net.Conn
	tls    *tls.Conn
	secret []byte // of what it sends
	number uint64 // of the record that is next
}

// shake returns a connection that has shaken hands, and has sent some data.
func (r *records) shake(t *testing.T, data string) {
	t.Helper()
	var keys bytes.Buffer
	r.tls = tls.Client(r.Conn, &tls.Config{InsecureSkipVerify: true, KeyLogWriter: &keys, MinVersion: tls.VersionTLS13})
	must(t, r.tls.Handshake())
	if suite := r.tls.ConnectionState().CipherSuite; suite != tls.TLS_AES_128_GCM_SHA256 {
		t.Skipf("this machine speaks %s", tls.CipherSuiteName(suite))
	}
	for line := range strings.Lines(keys.String()) {
		if words := strings.Fields(line); words[0] == "CLIENT_TRAFFIC_SECRET_0" {
			r.secret, _ = hex.DecodeString(words[2])
		}
	}
	_, err := r.Conn.Write(r.data(data))
	must(t, err)
}

// expand is HKDF-Expand-Label (RFC 8446, section 7.1).
func (r *records) expand(label string, length int) []byte {
	info := binary.BigEndian.AppendUint16(nil, uint16(length))
	info = append(append(info, byte(len("tls13 "+label))), "tls13 "+label+"\x00"...)
	key, err := hkdf.Expand(sha256.New, r.secret, string(info), length)
	if err != nil {
		panic(err)
	}
	return key
}

// seal returns a record.
func (r *records) seal(kind byte, content []byte) []byte {
	block, err := aes.NewCipher(r.expand("key", 16))
	if err != nil {
		panic(err)
	}
	gcm, _ := cipher.NewGCM(block)
	nonce := r.expand("iv", 12)
	for i := range 8 {
		nonce[4+i] ^= byte(r.number >> (56 - 8*i))
	}
	r.number++
	head := binary.BigEndian.AppendUint16([]byte{23, 3, 3}, uint16(len(content)+1+gcm.Overhead()))
	return gcm.Seal(head, nonce, append(bytes.Clone(content), kind), head)
}

func (r *records) data(text string) []byte { return r.seal(23, []byte(text)) }

// keyUpdate returns a KeyUpdate that asks for one.
func (r *records) keyUpdate() []byte {
	record := r.seal(22, []byte{24, 0, 0, 1, 1})
	r.secret, r.number = r.expand("traffic upd", sha256.Size), 0
	return record
}

// serveTLS serves on loopback, and returns how to connect.
func serveTLS(t *testing.T, config Config) (s *Server, dial func() *records) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	return serveTLSOn(t, ln, config), func() *records {
		c, err := net.Dial("tcp", ln.Addr().String())
		must(t, err)
		t.Cleanup(func() { _ = c.Close() })
		must(t, c.SetDeadline(time.Now().Add(time.Minute)))
		return &records{Conn: c}
	}
}

// serveTLSOn serves until the test is over.
func serveTLSOn(t *testing.T, ln net.Listener, config Config) *Server {
	config.TLS = certified()
	if config.Handler == nil {
		config.Handler = func(ctx *fasthttp.RequestCtx, c *Conn, fault *Fault) {}
	}
	s := New(config)
	served := make(chan error, 1)
	go func() { served <- s.Serve(ln) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_ = s.Shutdown(ctx)
		must(t, <-served)
	})
	return s
}

// ended reads until the server ends the connection, and fails where that is by the test's patience.
func (r *records) ended(t *testing.T, what string) (received []byte) {
	t.Helper()
	received, err := io.ReadAll(r.Conn)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("%s: the connection is still open", what)
	}
	return received
}

const start = "GET / HTTP/1.1\r\nHost: x\r\nX: "

// F35, F40: records without data are bounded, in front of each request and on a connection that was taken over, and one who goes on with them is closed
// before it has sent many.
func TestRecordsWithoutDataAreBounded(t *testing.T) {
	const few, many = 20, 2000
	padding := func(r *records) []byte { return r.seal(23, nil) }
	for name, tt := range map[string]struct {
		useless func(*records) []byte
		each    int // in front of each byte of data: TLS ends a connection after 16 in a row
	}{
		"KeyUpdates":        {(*records).keyUpdate, 15},
		"empty records":     {padding, 15},
		"one for each byte": {(*records).keyUpdate, 1},
	} {
		for _, upgraded := range []bool{false, true} {
			s, dial := serveTLS(t, Config{Handler: func(ctx *fasthttp.RequestCtx, c *Conn, fault *Fault) {
				if c.Refused(false, 0); upgraded {
					c.TakeOver()
					ctx.Hijack(func(c net.Conn) { _, _ = io.Copy(io.Discard, c) })
				}
			}})
			r := dial()
			r.shake(t, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
			send := func(n int) (sent int, err error) {
				for err == nil && sent < n {
					for range tt.each {
						if _, err = r.Conn.Write(tt.useless(r)); err == nil {
							sent++
						}
					}
					if err == nil {
						_, err = r.Conn.Write(r.data("G"))
					}
				}
				return sent, err
			}
			_, err := send(few)
			must(t, err)
			_, _ = send(many)
			r.ended(t, name)
			ledgertest.Equal(t, s.Counts.Wasteful.Load(), 1, "%s, upgraded %t: connections that were ended", name, upgraded)
		}
	}
}

// F35: a request of a byte a record is answered, and so are many small ones.
func TestSmallRecordsOfRequestsArePaidFor(t *testing.T) {
	_, dial := serveTLS(t, Config{Handler: func(_ *fasthttp.RequestCtx, c *Conn, _ *Fault) { c.Refused(false, 0) }})
	r := dial()
	r.shake(t, "")
	request := "GET /" + strings.Repeat("x", 100) + " HTTP/1.1\r\nHost: x\r\n\r\n"
	answers := bufio.NewReader(r.tls)
	for range 20 {
		for i := range request {
			_, err := r.Conn.Write(r.data(request[i : i+1]))
			must(t, err)
		}
		var response fasthttp.Response
		must(t, response.Read(answers))
		ledgertest.Equal(t, response.StatusCode(), 200, "the status")
	}
}

// network holds back what is written, and carries it as a network does: in segments that end anywhere, each read before the next has come.
type network struct {
	net.Conn
	held bytes.Buffer
}

func (n *network) Write(p []byte) (int, error) { return n.held.Write(p) }

func (n *network) carry() error {
	defer n.held.Reset()
	for segment := range slices.Chunk(n.held.Bytes(), 1448) {
		if _, err := n.Conn.Write(segment); err != nil {
			return err
		}
		synctest.Wait()
	}
	return nil
}

// Read carries what the peer is to answer.
func (n *network) Read(p []byte) (int, error) {
	if err := n.carry(); err != nil {
		return 0, err
	}
	return n.Conn.Read(p)
}

// F35: a client may send requests, and what follows an upgrade, in records as long as they may be, however they arrive: the first one of a connection too.
func TestRequestsInLongRecordsAreAnswered(t *testing.T) {
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		for _, cut := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, in segments %t", tls.VersionName(version), cut), func(t *testing.T) {
				bubbletest.Test(t, func(t *testing.T) { sendLongRecords(t, version, cut) })
			})
		}
	}
}

func sendLongRecords(t *testing.T, version uint16, cut bool) {
	const requests = 3
	taken := make(chan int64, 1)
	t.Cleanup(func() { time.Sleep(time.Minute) }) // until the cleaner of the server's workers has slept out
	ln := fasthttputil.NewInmemoryListener()
	serveTLSOn(t, ln, Config{Handler: func(ctx *fasthttp.RequestCtx, c *Conn, _ *Fault) {
		if c.Refused(false, 0); ctx.IsGet() {
			c.TakeOver()
			ctx.Hijack(func(c net.Conn) {
				n, _ := io.CopyN(io.Discard, c, requests*maxBodyBytes)
				taken <- n
			})
		}
	}})
	line, err := ln.Dial()
	must(t, err)
	defer line.Close()
	segments := &network{Conn: line}
	if cut {
		line = segments
	}
	c := tls.Client(line, &tls.Config{InsecureSkipVerify: true, MaxVersion: version, DynamicRecordSizingDisabled: true})
	answers := bufio.NewReader(c)
	for n := range requests {
		_, err := fmt.Fprintf(c, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", maxBodyBytes, make([]byte, maxBodyBytes))
		must(t, err)
		var response fasthttp.Response
		if err := response.Read(answers); err != nil {
			t.Fatalf("request %d: %v", n, err)
		}
		ledgertest.Equal(t, response.StatusCode(), 200, "the status of request %d", n)
	}
	_, err = fmt.Fprintf(c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n%s", make([]byte, requests*maxBodyBytes))
	must(t, err)
	must(t, segments.carry())
	ledgertest.Equal(t, <-taken, requests*maxBodyBytes, "bytes that were read after an upgrade")
}

// F47: what a handshake may take is bounded before it is read.
func TestALongClientHelloIsNotRead(t *testing.T) {
	const records, recordBytes = 4, 16 << 10
	hello := append([]byte{1, 0, 0xff, 0xdc, 3, 3}, make([]byte, 65500)...)
	for name, size := range map[string]int{"whole records": recordBytes, "halves": recordBytes / 2, "bytes": 1} {
		s, dial := serveTLS(t, Config{})
		r := dial()
		sent := 0
		for rest := hello; len(rest) > 0; rest = rest[min(size, len(rest)):] {
			record := binary.BigEndian.AppendUint16([]byte{22, 3, 1}, uint16(min(size, len(rest))))
			n, err := r.Conn.Write(append(record, rest[:min(size, len(rest))]...))
			if sent += n; err != nil {
				break
			}
		}
		r.ended(t, name)
		ledgertest.Equal(t, s.Counts.Wasteful.Load(), 1, "%s: connections that were ended", name)
	}
}

// F35, F48: a peer that makes TLS answer it and reads nothing does not keep the connection open, nor the server from stopping, at any
// time: its KeyUpdates are answered by who writes next.
func TestNothingThatTLSWritesByItselfWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, far := piped(t)
		far = shakeHands(t, c, far)
		c.TakeOver()
		socket := c.Detach()
		must(t, socket.SetReadDeadline(time.Now().Add(time.Minute)))
		began := time.Now()
		for range 100 { // of which the peer, which reads nothing, is to get an answer
			_, err := c.secure.Write([]byte("an alert or a KeyUpdate"))
			must(t, err)
		}
		must(t, socket.Close())
		if took := time.Since(began); took > lastWrite {
			t.Errorf("it took %v to close a connection", took)
		}
		_ = far
	})
}

// thinLine is a connection that carries some 3 KB a second.
type thinLine struct{ net.Conn }

func (l thinLine) Read(b []byte) (int, error) {
	time.Sleep(300 * time.Millisecond)
	return l.Conn.Read(b[:min(len(b), 1000)])
}

// F30: a write that ended at its deadline goes on with the rest, over TLS as without it.
func TestAWriteGoesOnAfterItsDeadline(t *testing.T) {
	for _, encrypted := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			c, far := piped(t)
			far = thinLine{far}
			if encrypted {
				far = shakeHands(t, c, far)
			}
			c.TakeOver()
			socket := c.Detach()
			want := bytes.Repeat([]byte("0123456789"), 10_000)
			got := make(chan []byte, 1)
			go func() {
				all := make([]byte, len(want))
				_, _ = io.ReadFull(far, all)
				got <- all
			}()
			ends := 0
			for rest := want; len(rest) > 0; {
				must(t, socket.SetWriteDeadline(time.Now().Add(time.Second)))
				n, err := socket.Write(rest)
				if rest = rest[n:]; err != nil {
					ends++
					if !isTimeout(err) || n == 0 || len(rest) == 0 {
						t.Fatalf("encrypted %t: %d bytes, %d are left, %v", encrypted, n, len(rest), err)
					}
				}
			}
			ledgertest.Equal(t, bytes.Equal(<-got, want), true, "encrypted %t: whether what came is what was sent", encrypted)
			if ends < 5 {
				t.Errorf("encrypted %t: %d writes ended at their deadline", encrypted, ends)
			}
		})
	}
}

// F48: Shutdown ends by its time, and with it every connection, whatever peers do over TLS: say nothing, half a handshake, ask and do not read.
func TestShutdownEndsWhateverPeersDo(t *testing.T) {
	s, dial := serveTLS(t, Config{Handler: func(ctx *fasthttp.RequestCtx, c *Conn, _ *Fault) {
		ctx.SetBody(make([]byte, 16<<20))
	}})
	silent, half, asks, updates := dial(), dial(), dial(), dial()
	_ = silent
	_, err := half.Conn.Write([]byte{22, 3, 1, 1, 0, 1})
	must(t, err)
	asks.shake(t, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	updates.shake(t, start)
	for range 30 {
		_, err := updates.Conn.Write(updates.keyUpdate())
		must(t, err)
		_, err = updates.Conn.Write(updates.data("x"))
		must(t, err)
	}
	_, err = asks.Conn.Read(make([]byte, 1)) // the answer is under way
	must(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := s.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Shutdown = %v", err)
	}
	for name, r := range map[string]*records{"silent": silent, "half a handshake": half, "does not read": asks, "KeyUpdates": updates} {
		r.ended(t, fmt.Sprint(name))
	}
	ledgertest.Equal(t, s.Connections(), 0, "connections that are left")
}
