package wire

import (
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

// listenTCP returns what takes a filter, on all addresses.
func listenTCP(t *testing.T) net.Listener {
	t.Helper()
	var listen net.ListenConfig
	listen.SetMultipathTCP(false)
	ln, err := listen.Listen(t.Context(), "tcp", ":0")
	must(t, err)
	t.Cleanup(func() { _ = ln.Close() })
	return ln
}

// F33, F40: a client that connects again and again although it is refused is not let in for the rest of the second. Its connections go on, others
// are let in, and so is it afterwards.
func TestFloodsAreDropped(t *testing.T) {
	for _, tt := range []struct{ attacker, other string }{{"127.0.0.2", "127.0.0.1"}, {"127.0.0.2", "::1"}, {"::1", "127.0.0.1"}} {
		t.Run(tt.attacker+" and "+tt.other, func(t *testing.T) {
			t.Parallel()
			inner := listenTCP(t)
			config := Config{MaxConns: 1000, MaxConnsPerClient: 2, Identity: ratelimit.NewIdentity(nil, nil)}.WithDefaults()
			l := newListener(inner, &config, newCaps(&config, new(Counts)))
			go func() {
				for c, err := l.Accept(); err == nil; c, err = l.Accept() {
					go func() { _, _ = io.Copy(c, c) }()
				}
			}()
			dial := func(from string, within time.Duration) (net.Conn, error) {
				to := net.TCPAddr{IP: net.ParseIP(from), Port: inner.Addr().(*net.TCPAddr).Port}
				return (&net.Dialer{Timeout: within, LocalAddr: &net.TCPAddr{IP: to.IP}}).DialContext(t.Context(), "tcp", to.String())
			}
			held, err := dial(tt.attacker, time.Minute)
			if _, v6 := dial("::1", time.Minute); v6 != nil {
				t.Skipf("this machine has no IPv6: %v", v6)
			}
			must(t, err)
			echoes := func(c net.Conn) {
				t.Helper()
				_, err := c.Write([]byte{1})
				must(t, err)
				_, err = io.ReadFull(c, make([]byte, 1))
				must(t, err)
			}
			echoes(held)
			for ; err == nil; _, err = dial(tt.attacker, floodWindow/4) { // comes within the window sooner or later
				for floods, refused := l.caps.counts.Floods.Load(), l.caps.counts.RefusedClient.Load(); l.caps.counts.Floods.Load() == floods; {
					if l.caps.counts.RefusedClient.Load() > refused+100*floodRefusals {
						t.Fatal("nobody is dropped: does this kernel take a filter?")
					}
					c, err := dial(tt.attacker, time.Minute)
					must(t, err)
					_ = c.Close()
				}
			}
			ledgertest.Equal(t, os.IsTimeout(err), true, "whether the attempt %v ended by its time", err)
			echoes(held)
			other, err := dial(tt.other, time.Minute)
			must(t, err)
			echoes(other)
			_, err = dial(tt.attacker, time.Minute)
			must(t, err)
		})
	}
}

// segment returns a TCP header with flags, and that of IP behind it.
func segment(flags byte, source string) []byte {
	at := netip.MustParseAddr(source)
	tcp := make([]byte, 20)
	tcp[13] = flags
	if at.Is4() {
		return append(append(append(tcp, 0x45), make([]byte, 11)...), at.AsSlice()...)
	}
	return append(append(append(tcp, 0x60), make([]byte, 7)...), at.AsSlice()...)
}

// TestTheFilterDropsSYNsOfItsNetworks runs the program on segments with the header of IP at another place.
func TestTheFilterDropsSYNsOfItsNetworks(t *testing.T) {
	var dropped []netip.Prefix
	for _, network := range []string{"192.0.2.1/32", "2001:db8:1:2::/64", "2001:db8:3::/48", "198.51.100.7/32", "3333:4444::/64"} {
		dropped = append(dropped, netip.MustParsePrefix(network))
	}
	vm, err := bpf.NewVM(dropSYNs(dropped, 20))
	must(t, err)
	const syn, ack, ece, cwr = 0x02, 0x10, 0x40, 0x80
	for _, tt := range []struct {
		source string
		drops  bool
	}{
		{"192.0.2.1", true}, {"192.0.2.2", false}, {"193.0.2.1", false}, {"198.51.100.7", true},
		{"2001:db8:1:2::5", true}, {"2001:db8:1:3::5", false}, {"2001:db8:2:2::5", false},
		{"2001:db8:3:9::5", true}, {"2001:db8:4:9::5", false}, {"2001:db9:3:9::5", false},
		{"51.51.68.68", false}, // whose bytes begin a network of IPv6
	} {
		for flags, isSYN := range map[byte]bool{syn: true, syn | ece | cwr: true, syn | ack: false, ack: false, 0x04: false} {
			kept, err := vm.Run(segment(flags, tt.source))
			must(t, err)
			ledgertest.Equal(t, kept == 0, tt.drops && isSYN, "%s, flags %#x: whether it is dropped", tt.source, flags)
		}
	}
}

// TestWhoIsDropped counts refusals of many clients within one window: an exempt one's neighbours stay, and
// there is an end to what Linux takes.
func TestWhoIsDropped(t *testing.T) {
	identity := ratelimit.NewIdentity(nil, nil)
	f := newFloodFilter(listenTCP(t), identity)
	identity.SetExempt([]netip.Prefix{netip.MustParsePrefix("2001:db8:1::/120")}) // as a node does it, at its start and at SIGHUP
	f.refused[netip.Prefix{}] = 1                                                 // a window has begun, and does not end
	refuse := func(site, n byte, times int) (drops int) {
		for range times {
			if f.count(netip.AddrFrom16([16]byte{0x20, 1, 0x0d, 0xb8, 0, site, 0, n})) {
				drops++
			}
		}
		return drops
	}
	ledgertest.Equal(t, refuse(1, 0, 10*floodRefusals), 0, "drops in a network with an exempt address")
	ledgertest.Equal(t, refuse(1, 1, 10*floodRefusals), 1, "drops of a client beside it")
	for n := range byte(20) {
		ledgertest.Equal(t, refuse(2, n, floodRefusals-1), 0, "drops by client %d of a /48", n)
	}
	for site := range byte(2 * maxDropped) {
		refuse(3+site, 0, floodRefusals)
	}
	ledgertest.Equal(t, f.dropped[0], netip.MustParsePrefix("2001:db8:1:1::/64"), "the first network dropped")
	ledgertest.Equal(t, len(f.dropped), maxDropped, "networks dropped")
	must(t, f.attachLocked())
	f.forget()
	ledgertest.Equal(t, len(f.refused)+len(f.dropped), 0, "what is known in the next window")
}
