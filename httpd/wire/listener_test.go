package wire

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"slices"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/valyala/fasthttp/fasthttputil"

	"ledgerd/engine/ledger/ledgertest"
	"ledgerd/httpd/ratelimit"
)

var must = ledgertest.Must

// scriptedListener answers Accept with the errors of a script, then with connections.
type scriptedListener struct {
	*fasthttputil.InmemoryListener
	script []error
}

func (l *scriptedListener) Accept() (net.Conn, error) {
	if len(l.script) > 0 {
		err := l.script[0]
		l.script = l.script[1:]
		return nil, &net.OpError{Op: "accept", Err: os.NewSyscallError("accept4", err)}
	}
	return l.InmemoryListener.Accept()
}

func listen(script ...error) (*scriptedListener, *listener) {
	inner := &scriptedListener{fasthttputil.NewInmemoryListener(), script}
	identity := ratelimit.NewIdentity([]netip.Prefix{netip.MustParsePrefix("10.0.0.0/24")}, []netip.Prefix{netip.MustParsePrefix("10.0.1.0/24")})
	config := Config{MaxConns: 5, MaxConnsPerClient: 2, Identity: identity}.WithDefaults()
	return inner, newListener(inner, &config, newCaps(&config, new(Counts)))
}

// G1, F34: TestShortagesPassAndTheListenerLives retries with a pause that grows.
func TestShortagesPassAndTheListenerLives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner, l := listen(syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM)
		go func() { _, _ = inner.Dial() }()
		start := time.Now()
		c, err := l.Accept()
		must(t, err)
		ledgertest.Equal(t, time.Since(start), (5+10+20+40)*time.Millisecond, "the pauses")
		ledgertest.Equal(t, l.caps.counts.Shortages.Load(), 4, "shortages counted")
		_ = c.Close()
	})
}

func TestAPausedListenerCanBeClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, l := listen(slices.Repeat([]error{syscall.EMFILE}, 1000)...)
		ended := make(chan error)
		go func() { _, err := l.Accept(); ended <- err }()
		synctest.Wait()
		must(t, l.Close())
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

// addressed is a connection from an address, which need not be there.
type addressed struct {
	net.Conn
	from string
}

func (a *addressed) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.ParseIP(a.from)} }

func (a *addressed) Close() error {
	if a.Conn == nil {
		return nil
	}
	return a.Conn.Close()
}

// G3: connections are capped by client: an IPv4 address or a /64.
func TestConnectionsAreCappedByClient(t *testing.T) {
	_, l := listen()
	l.caps.most = 100
	admit := func(from string) *Conn { return l.admit(&addressed{from: from}) }
	first, second := admit("2001:db8::1"), admit("2001:db8::2")
	if first == nil || second == nil || admit("2001:db8::3") != nil {
		t.Fatal("a /64 should have exactly two connections")
	}
	if admit("2001:db8:0:1::1") == nil {
		t.Error("the next /64 was refused")
	}
	_ = first.Close()
	if err := first.Close(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("second Close = %v, want net.ErrClosed", err)
	}
	if third := admit("2001:db8::3"); third == nil || admit("2001:db8::4") != nil {
		t.Error("one closed connection should make room for exactly one")
	}
	for _, from := range []string{"10.0.0.1", "10.0.1.1"} { // a trusted proxy, an exempt client
		for range 3 {
			if admit(from) == nil {
				t.Fatalf("%s was capped", from)
			}
		}
	}
	ledgertest.Equal(t, []uint64{l.caps.counts.RefusedTotal.Load(), l.caps.counts.RefusedClient.Load()}, []uint64{0, 2}, "refusals in total and by client")
}

// F33, F34: connections are capped in total, those of exempt clients by the file descriptors alone.
func TestConnectionsAreCappedInTotal(t *testing.T) {
	_, l := listen()
	l.caps.mostExempt = 6
	var held []*Conn
	for i := range 5 {
		held = append(held, l.admit(&addressed{from: fmt.Sprintf("192.0.2.%d", i)}))
	}
	if l.admit(&addressed{from: "192.0.2.9"}) != nil || l.admit(&addressed{from: "10.0.0.1"}) != nil {
		t.Error("a sixth connection was admitted")
	}
	exempt := l.admit(&addressed{from: "10.0.1.1"})
	if exempt == nil || l.admit(&addressed{from: "10.0.1.2"}) != nil {
		t.Fatal("exempt clients have no connection, or more than there are file descriptors for")
	}
	_ = exempt.Close()
	for _, c := range held {
		_ = c.Close()
	}
	ledgertest.Equal(t, []int{l.caps.count(), len(l.caps.clients)}, []int{0, 0}, "connections and clients that are left")
}

// F42: a client makes as many connections a minute as it may, and each /64 is a client.
func TestConnectionsAreCappedByPace(t *testing.T) {
	_, l := listen()
	l.caps.most = 100
	for i := range 20 {
		if l.admit(&addressed{from: fmt.Sprintf("2001:db8:1:%x::1", i)}) == nil {
			t.Errorf("client %d of a /48 has no connection", i)
		}
	}
	l.caps.pace = ratelimit.New(5, 0, time.Now())
	for i := range 7 {
		if c := l.admit(&addressed{from: "192.0.2.1"}); (c != nil) != (i < 5) {
			t.Errorf("connection %d of a client that may make five a minute: admitted = %v", i, c != nil)
		} else if c != nil {
			_ = c.Close()
		}
	}
}

// G4, F42: where the server is full, the connection whose time for a request, or for the rest of one, is over first makes room, and none
// whose request is answered.
func TestAFullServerMakesRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, l := listen()
		ended := make(chan int, 5)
		for i, wait := range []time.Duration{30, 5, 20, 0, 1} { // seconds; the fourth has begun a request, the last is an exempt client's
			near, far := net.Pipe()
			defer near.Close()
			c := l.admit(&addressed{far, map[bool]string{false: fmt.Sprint("192.0.2.", i), true: "10.0.1.1"}[i == 4]})
			must(t, c.SetReadDeadline(time.Now().Add(time.Hour+wait*time.Second)))
			go func() {
				if _, err := c.Read(make([]byte, 1)); errors.Is(err, io.ErrClosedPipe) {
					_ = c.Close()
					ended <- i
				}
			}()
		}
		synctest.Wait()
		for _, want := range []int{3, 1, 2, 0} {
			if l.admit(&addressed{from: "192.0.2.99"}) == nil {
				t.Fatal("nobody made room")
			}
			ledgertest.Equal(t, <-ended, want, "the connection that made room")
			l.caps.mostPerClient++
		}
		if l.admit(&addressed{from: "192.0.2.99"}) != nil || l.caps.counts.Evicted.Load() != 4 || l.caps.counts.RefusedTotal.Load() != 1 {
			t.Errorf("the fifth: evicted %d, refused %d, want 4 and 1", l.caps.counts.Evicted.Load(), l.caps.counts.RefusedTotal.Load())
		}
	})
}

// A connection ends with its tenth refusal in a row, unless it is a trusted proxy's, which brings the requests of other clients too.
func TestAConnectionEndsWithTheTenthRefusalInARow(t *testing.T) {
	_, l := listen()
	for from, ends := range map[string]bool{"192.0.2.1": true, "10.0.0.1": false} {
		c := l.admit(&addressed{from: from})
		for i := range 3 * maxRefusals { // of which one request in between is answered
			refused := i != maxRefusals-1
			ledgertest.Equal(t, c.Refused(refused, refusalBytes-1), ends && i >= 2*maxRefusals-1, "%s: whether request %d ends the connection", from, i)
		}
		c = l.admit(&addressed{from: from})
		for i := range 3 { // four of ten each
			ledgertest.Equal(t, c.Refused(true, 3*refusalBytes), ends && i == 2, "%s: whether long request %d ends the connection", from, i)
		}
	}
}

// Two listeners of a server share its caps, which may change: a client has its connections once.
func TestListenersShareTheirCaps(t *testing.T) {
	s := New(Config{MaxConnsPerClient: 3, MaxConns: 100})
	first, second := newListener(nil, &s.config, s.caps), newListener(nil, &s.config, s.caps)
	admitted := 0
	connect := func() {
		for range 5 {
			for _, l := range []*listener{first, second} {
				if l.admit(&addressed{from: "192.0.2.1"}) != nil {
					admitted++
				}
			}
		}
	}
	connect()
	ledgertest.Equal(t, []int{admitted, s.Connections()}, []int{3, 3}, "connections admitted and open")
	s.SetCaps(100, 5, 0)
	connect()
	ledgertest.Equal(t, []int{admitted, s.Connections()}, []int{5, 5}, "connections once a client may have two more")
	s.SetCaps(6, 100, 0)
	connect()
	ledgertest.Equal(t, []int{admitted, s.Connections()}, []int{6, 6}, "connections once there may be six in all")
}

// A connection whose API key is known counts for that, within caps of its own, and for its address no more.
func TestAConnectionCountsForItsKey(t *testing.T) {
	_, l := listen()
	l.caps.most = 100
	key := ratelimit.Client{Key: netip.IPv6Unspecified().WithZone("key:1"), Sockets: 3}
	count := func(client ratelimit.Client) (moved int) {
		for range 10 {
			if c := l.admit(&addressed{from: "192.0.2.1"}); c == nil {
				t.Fatal("a connection of a key counts for its address")
			} else if c.CountFor(client) {
				moved++
				if !c.CountFor(client) {
					t.Error("it is refused when it sends its key again")
				}
			} else {
				_ = c.Close()
			}
		}
		return moved
	}
	ledgertest.Equal(t, count(key), 2+3, "connections of a key that may have three sockets")
	ledgertest.Equal(t, count(ratelimit.Client{Key: netip.IPv6Unspecified().WithZone("key:2"), Exempt: true}), 10, "connections of an exempt key")
	proxied := l.admit(&addressed{from: "10.0.0.1"})
	ledgertest.Equal(t, proxied.CountFor(key), true, "whether a trusted proxy's connection may bring a key that has all its own")
	for _, c := range l.caps.open() {
		_ = c.Close()
	}
	ledgertest.Equal(t, []int{l.caps.count(), len(l.caps.clients)}, []int{0, 0}, "connections and clients that are left")
}

// halfClosing is a socket that can close its writing side.
type halfClosing struct{ net.Conn }

func (halfClosing) CloseWrite() error { return nil }

// TestConnectionsDrainSideBySide closes connections that each wait for the rest of a refused
// request: together they wait as long as one.
func TestConnectionsDrainSideBySide(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Config{MaxConns: 5})
		l := newListener(nil, &s.config, s.caps)
		for range 5 {
			near, far := net.Pipe()
			defer func() { _ = far.Close() }()
			l.admit(halfClosing{near}).draining.Store(true)
		}
		began := time.Now()
		s.closeConns()
		ledgertest.Equal(t, time.Since(began), drainTime, "how long closing took")
		ledgertest.Equal(t, l.caps.count(), 0, "connections that are left")
	})
}
