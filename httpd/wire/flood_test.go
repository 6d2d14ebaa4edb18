package wire

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"testing"
	"time"

	"golang.org/x/net/bpf"

	"ledgerd/engine/ledger/ledgertest"
	"ledgerd/httpd/ratelimit"
)

// F33, F40: a client that connects again and again although it is refused is not let in for the rest of the second. Its connections go on, others
// are let in, and so is it afterwards.
func TestFloodsAreDropped(t *testing.T) {
	for _, tt := range []struct{ attacker, other string }{{"127.0.0.2", "127.0.0.1"}, {"127.0.0.2", "::1"}, {"::1", "127.0.0.1"}} {
		t.Run(tt.attacker+" and "+tt.other, func(t *testing.T) {
			t.Parallel()
			var listen net.ListenConfig
			listen.SetMultipathTCP(false)
			inner, err := listen.Listen(t.Context(), "tcp", ":0")
			must(t, err)
			config := Config{MaxConns: 1000, MaxConnsPerClient: 2, Identity: new(ratelimit.Identity)}.WithDefaults()
			l := newListener(inner, &config, new(Counts))
			defer l.Close()
			go func() {
				for c, err := l.Accept(); err == nil; c, err = l.Accept() {
					go func() { _, _ = io.Copy(c, c) }()
				}
			}()
			dial := func(from string) (net.Conn, error) {
				at := net.TCPAddr{IP: net.ParseIP(from), Port: inner.Addr().(*net.TCPAddr).Port}
				return (&net.Dialer{Timeout: 300 * time.Millisecond, LocalAddr: &net.TCPAddr{IP: at.IP}}).DialContext(t.Context(), "tcp", at.String())
			}
			echoes := func(c net.Conn) {
				t.Helper()
				_, err := c.Write([]byte{1})
				must(t, err)
				_, err = io.ReadFull(c, make([]byte, 1))
				must(t, err)
			}
			held, err := dial(tt.attacker)
			must(t, err)
			echoes(held)
			refused := 0
			for ; err == nil && refused < 100*floodRefusals; refused++ {
				_, err = dial(tt.attacker)
			}
			if !os.IsTimeout(err) || refused < floodRefusals {
				t.Fatalf("attempt %d: %v, want a timeout after %d", refused, err, floodRefusals)
			}
			echoes(held)
			other, err := dial(tt.other)
			must(t, err)
			echoes(other)
			ledgertest.Equal(t, l.counts.Floods.Load(), 1, "floods")
			time.Sleep(floodWindow)
			again, err := dial(tt.attacker)
			must(t, err)
			_ = errors.Join(held.Close(), other.Close(), again.Close())
		})
	}
}

// TestAFullFloodFilterIsAccepted has as many clients dropped as there may be.
func TestAFullFloodFilterIsAccepted(t *testing.T) {
	var listen net.ListenConfig
	listen.SetMultipathTCP(false)
	inner, err := listen.Listen(t.Context(), "tcp", "127.0.0.1:0")
	must(t, err)
	defer inner.Close()
	f := newFloodFilter(inner)
	for i := range maxDropped + 1 {
		for n := range floodRefusals {
			client := netip.AddrFrom16([16]byte{0x20, 1, 0x0d, 0xb8, 0, byte(i)})
			ledgertest.Equal(t, f.count(client), n == floodRefusals-1 && i < maxDropped, "client %d, refusal %d: whether it is dropped", i, n)
		}
	}
	program, err := bpf.Assemble(dropSYNs(f.dropped))
	must(t, err)
	ledgertest.Equal(t, len(f.dropped), maxDropped, "clients dropped by %d instructions", len(program))
}
