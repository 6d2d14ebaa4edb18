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
	"ledgerd/httpd/httpdtest"
	"ledgerd/httpd/ratelimit"
)

var must = ledgertest.Must

// TestMain fails if anything still runs after the tests.
func TestMain(m *testing.M) { httpdtest.Main(m) }

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

// testIdentity trusts 10.0.0.0/24, and exempts 10.0.1.0/24.
func testIdentity() *ratelimit.Identity {
	return ratelimit.NewIdentity([]netip.Prefix{netip.MustParsePrefix("10.0.0.0/24")}, []netip.Prefix{netip.MustParsePrefix("10.0.1.0/24")})
}

func listen(script ...error) (*scriptedListener, *listener) {
	inner := &scriptedListener{fasthttputil.NewInmemoryListener(), script}
	config := Config{MaxConns: 5, MaxConnsPerClient: 2, Identity: testIdentity()}.WithDefaults()
	return inner, newListener(inner, &config, newCaps(&config, new(Counts)))
}

// G1, F34: a listener outlives shortages, with pauses that grow until something is accepted, and can be closed in one. Other errors are final.
func TestShortagesPassAndTheListenerLives(t *testing.T) {
	shortages := []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM}
	for name, tt := range map[string]struct {
		script []error
		want   error
		after  time.Duration
		passed uint64 // shortages
	}{
		"shortages":     {shortages, nil, (5 + 10 + 20 + 40) * time.Millisecond, 4},
		"many":          {slices.Repeat(shortages, 100), net.ErrClosed, time.Minute, 67},
		"another error": {[]error{syscall.EINVAL}, syscall.EINVAL, 0, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			inner, l := listen(tt.script...)
			go func() { _, _ = inner.Dial() }()
			ends := time.AfterFunc(time.Minute, func() { _ = l.Close() })
			start := time.Now()
			c, err := l.Accept()
			ends.Stop()
			ledgertest.ErrorIs(t, err, tt.want, "%s: Accept", name)
			ledgertest.Equal(t, time.Since(start), tt.after, "%s: the pauses", name)
			ledgertest.Equal(t, l.caps.counts.Shortages.Load(), tt.passed, "%s: shortages counted", name)
			if c != nil {
				_ = c.Close()
			}
			_ = inner.Close()
		})
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
