package ratelimit

import (
	"net"
	"net/netip"
	"testing"

	"github.com/valyala/fasthttp"
)

func testIdentity() *Identity {
	return &Identity{
		TrustedProxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8")},
		Exempt:         []netip.Prefix{netip.MustParsePrefix("192.0.2.128/25"), netip.MustParsePrefix("2001:db8:1::1/128")},
	}
}

// G3, F43: TestClientBehindProxies checks whom a request is counted for.
func TestClientBehindProxies(t *testing.T) {
	for _, tt := range []struct {
		peer   string
		lines  []string
		client string
		exempt bool
	}{
		{"192.0.2.1", nil, "192.0.2.1", false},
		{"::ffff:192.0.2.1", nil, "192.0.2.1", false},
		{"2001:db8::abcd:1", nil, "2001:db8::", false},
		{"192.0.2.200", nil, "192.0.2.200", true},
		{"2001:db8:1::1", nil, "2001:db8:1::", true},
		{"2001:db8:1::2", nil, "2001:db8:1::", false},
		{"192.0.2.1", []string{"192.0.2.200"}, "192.0.2.1", false}, // not trusted: not read
		{"10.0.0.1", nil, "10.0.0.1", false},
		{"10.0.0.1", []string{""}, "10.0.0.1", false},
		{"10.0.0.1", []string{"192.0.2.1"}, "192.0.2.1", false},
		{"10.0.0.1", []string{"192.0.2.200"}, "192.0.2.200", true},
		{"fd00::1", []string{"2001:db8::5"}, "2001:db8::", false},
		{"10.0.0.1", []string{"203.0.113.9, 192.0.2.1"}, "192.0.2.1", false}, // the left one can be forged
		{"10.0.0.1", []string{"203.0.113.9, 192.0.2.1 , 10.2.3.4,\t10.0.0.2"}, "192.0.2.1", false},
		{"10.0.0.1", []string{"203.0.113.9", "192.0.2.1", "10.0.0.3"}, "192.0.2.1", false},
		{"10.0.0.1", []string{"10.0.0.5, 10.0.0.6"}, "10.0.0.5", false}, // all trusted: the left-most
		{"10.0.0.1", []string{"192.0.2.1:4711"}, "192.0.2.1", false},
		{"10.0.0.1", []string{"[2001:db8::7]:80"}, "2001:db8::", false},
		{"10.0.0.1", []string{"::ffff:192.0.2.1"}, "192.0.2.1", false},
		{"10.0.0.1", []string{"fe80::1%eth0"}, "fe80::", false},
		{"10.0.0.1", []string{"unknown"}, "10.0.0.1", false},
		{"10.0.0.1", []string{"192.0.2.1, x"}, "10.0.0.1", false},
		{"10.0.0.1", []string{"x, 192.0.2.1"}, "192.0.2.1", false}, // behind the client nothing is read
		{"10.0.0.1", []string{"192.0.2.1,"}, "10.0.0.1", false},
		{"10.0.0.1", []string{"192.0.2.1,,10.0.0.2"}, "10.0.0.1", false},
		{"10.0.0.1", []string{"192.0.2.1, 10.0.0.256"}, "10.0.0.1", false},
		{"10.0.0.1", []string{"192.0.2.01"}, "10.0.0.1", false},
		{"10.0.0.1", []string{`"192.0.2.1"`}, "10.0.0.1", false},
	} {
		id := testIdentity()
		var h fasthttp.RequestHeader
		for _, line := range tt.lines {
			h.Add("X-Forwarded-For", line)
		}
		got := id.ClientOf(id.PeerOf(&net.TCPAddr{IP: net.ParseIP(tt.peer), Port: 9}), &h)
		if got.Key.String() != tt.client || got.Exempt != tt.exempt {
			t.Errorf("peer %s, X-Forwarded-For %q: client %s, exempt %v, want %s, %v", tt.peer, tt.lines, got.Key, got.Exempt, tt.client, tt.exempt)
		}
	}
}

// F43: FuzzForwardedFor feeds the header anything: a client always comes out, and one that no
// forger behind the peer can choose unless the peer is trusted.
func FuzzForwardedFor(f *testing.F) {
	f.Add("192.0.2.1, 10.0.0.1")
	f.Add("[2001:db8::1]:80,unknown")
	f.Fuzz(func(t *testing.T, line string) {
		id := testIdentity()
		var h fasthttp.RequestHeader
		h.Set("X-Forwarded-For", line)
		if got := id.ClientOf(id.PeerOf(&net.TCPAddr{IP: net.ParseIP("192.0.2.1")}), &h); got.Key.String() != "192.0.2.1" {
			t.Errorf("%q: an untrusted peer became %s", line, got.Key)
		}
		got := id.ClientOf(id.PeerOf(&net.TCPAddr{IP: net.ParseIP("10.0.0.1")}), &h)
		if !got.Key.IsValid() || got.Key.Is4In6() || got.Key.Zone() != "" || got.Key != id.clientAt(got.Key).Key {
			t.Errorf("%q: client %s is no client's key", line, got.Key)
		}
	})
}
