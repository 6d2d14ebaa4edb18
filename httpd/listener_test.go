package httpd

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"ledgerd/engine/ledger"
)

// scriptedListener answers Accept with the errors of a script, then with connections.
type scriptedListener struct {
	script []error
	conns  chan net.Conn
	closed chan struct{}
}

func (l *scriptedListener) Accept() (net.Conn, error) {
	if len(l.script) > 0 {
		err := l.script[0]
		l.script = l.script[1:]
		return nil, &net.OpError{Op: "accept", Err: os.NewSyscallError("accept4", err)}
	}
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *scriptedListener) Close() error   { close(l.closed); return nil }
func (l *scriptedListener) Addr() net.Addr { return &net.TCPAddr{} }

func listen(script ...error) (*scriptedListener, *listener) {
	inner := &scriptedListener{script: script, conns: make(chan net.Conn, 10), closed: make(chan struct{})}
	return inner, newListener(inner, listenerConfig{
		identity: &identity{trustedProxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/24")}, exempt: []netip.Prefix{netip.MustParsePrefix("10.0.1.0/24")}},
		maxConns: 5, maxPerPeer: 2, log: slog.New(slog.DiscardHandler), meters: new(meters),
	})
}

// TestShortagesPassAndTheListenerLives retries with a pause that grows, and stays deaf
// to nothing else.
func TestShortagesPassAndTheListenerLives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner, l := listen(syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.ECONNABORTED)
		near, far := net.Pipe()
		defer func() { _, _ = near.Close(), far.Close() }()
		inner.conns <- far
		start := time.Now()
		c, err := l.Accept()
		if err != nil {
			t.Fatalf("Accept: %v", err)
		}
		if got, want := time.Since(start), (5+10+20+40+80)*time.Millisecond; got != want {
			t.Errorf("paused %s, want %s", got, want)
		}
		if got := l.meters.shortages.Load(); got != 5 {
			t.Errorf("counted %d shortages, want 5", got)
		}
		_ = c.Close()
	})
}

func TestAPausedListenerCanBeClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, l := listen(make([]error, 0)...)
		inner := l.Listener.(*scriptedListener)
		for range 1000 {
			inner.script = append(inner.script, syscall.EMFILE)
		}
		ended := make(chan error)
		go func() { _, err := l.Accept(); ended <- err }()
		synctest.Wait()
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		if err := <-ended; !errors.Is(err, net.ErrClosed) {
			t.Errorf("Accept = %v, want net.ErrClosed", err)
		}
	})
}

func TestOtherAcceptErrorsAreFinal(t *testing.T) {
	_, l := listen(syscall.EINVAL)
	if _, err := l.Accept(); !errors.Is(err, syscall.EINVAL) {
		t.Errorf("Accept = %v, want EINVAL", err)
	}
}

// addressed is a connection from an address.
type addressed struct {
	net.Conn
	from   string
	closed bool
}

func (a *addressed) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.ParseIP(a.from)} }
func (a *addressed) Close() error         { a.closed = true; return nil }

func TestConnectionsAreCappedByClient(t *testing.T) {
	_, l := listen()
	admit := func(from string) *conn { return l.admit(&addressed{from: from}) }
	first, second := admit("2001:db8::1"), admit("2001:db8::2")
	if first == nil || second == nil || admit("2001:db8::3") != nil {
		t.Fatal("a /64 should have exactly two connections")
	}
	if c := admit("2001:db8:0:1::1"); c == nil {
		t.Error("the next /64 was refused")
	} else {
		_ = c.Close()
	}
	_ = first.Close()
	if err := first.Close(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("second Close = %v, want net.ErrClosed", err)
	}
	if third := admit("2001:db8::3"); third == nil || admit("2001:db8::4") != nil {
		t.Error("one closed connection should make room for exactly one")
	}
	for _, from := range []string{"10.0.0.1", "10.0.1.1"} { // a trusted proxy, an exempt client
		var held []*conn
		for range 3 {
			held = append(held, admit(from))
		}
		for _, c := range held {
			if c == nil {
				t.Fatalf("%s was capped", from)
			}
			_ = c.Close()
		}
	}
	if total, client := l.meters.refusedAll.Load(), l.meters.refusedPeer.Load(); total != 0 || client != 2 {
		t.Errorf("counted %d and %d refusals, want 0 and 2", total, client)
	}
}

func TestConnectionsAreCappedInTotal(t *testing.T) {
	_, l := listen()
	var held []*conn
	for i := range 5 {
		held = append(held, l.admit(&addressed{from: fmt.Sprintf("192.0.2.%d", i)}))
	}
	if l.admit(&addressed{from: "192.0.2.9"}) != nil || l.admit(&addressed{from: "10.0.0.1"}) != nil {
		t.Error("a sixth connection was admitted")
	}
	exempt := l.admit(&addressed{from: "10.0.1.1"})
	if exempt == nil {
		t.Fatal("an exempt client was capped")
	}
	_ = exempt.Close()
	for _, c := range held {
		_ = c.Close()
	}
	if l.count() != 0 || len(l.perPeer) != 0 {
		t.Errorf("%d connections and %d clients are left", l.count(), len(l.perPeer))
	}
}

// TestRefusedConnectionsAreClosedAtOnce goes over a real listener.
func TestRefusedConnectionsAreClosedAtOnce(t *testing.T) {
	w := serveTCP(t, func(c *Config) { c.MaxConnsPerClient = 1 })
	first := w.dial()
	if _, err := io.WriteString(first, "GET /api/health HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if r := readReply(t, bufio.NewReader(first), "GET"); r.status != 200 {
		t.Fatalf("status %d", r.status)
	}
	if rest, err := io.ReadAll(w.dial()); len(rest) > 0 || err != nil && !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("second connection: %q, %v, want an end", rest, err)
	}
}

func TestShutdownLetsExchangesEnd(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	slow := &slowLedger{fakeLedger: newFakeLedger(), entered: make(chan struct{}), leave: make(chan struct{})}
	s := New(Config{Ledger: slow, Version: "0.1.0"})
	served := make(chan error, 1)
	go func() { served <- s.Serve(ln) }()
	c, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	if _, err := io.WriteString(c, "GET /api/account/"+whole.String()+" HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	<-slow.entered
	stopped := make(chan error, 1)
	go func() { stopped <- s.Shutdown(context.Background()) }()
	if err := <-served; err != nil {
		t.Errorf("Serve = %v, want nil", err)
	}
	close(slow.leave)
	all, err := io.ReadAll(c)
	if err != nil || !strings.HasPrefix(string(all), "HTTP/1.1 200 ") || !strings.Contains(string(all), "Connection: close") {
		t.Errorf("the exchange under way got %q, %v", all, err)
	}
	if err := <-stopped; err != nil {
		t.Errorf("Shutdown = %v", err)
	}
	if s.connections() != 0 {
		t.Errorf("%d connections are left", s.connections())
	}
	if err := s.Serve(ln); !errors.Is(err, errServedTwice) {
		t.Errorf("Serve again = %v, want errServedTwice", err)
	}
}

// slowLedger holds a question until it may leave.
type slowLedger struct {
	*fakeLedger
	entered, leave chan struct{}
}

func (l *slowLedger) Account(q ledger.Query, key ledger.Pubkey) (ledger.Account, ledger.View, error) {
	close(l.entered)
	<-l.leave
	return l.fakeLedger.Account(q, key)
}
