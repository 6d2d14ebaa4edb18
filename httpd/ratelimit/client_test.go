package ratelimit

import (
	"net"
	"net/netip"
	"os"
	"strings"
	"testing"

	"github.com/valyala/fasthttp"

	"ledgerd/engine/ledger/ledgertest"
)

func testIdentity() *Identity {
	return NewIdentity([]netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8"), UnixPeers},
		[]netip.Prefix{netip.MustParsePrefix("192.0.2.128/25"), netip.MustParsePrefix("2001:db8:1::1/128")})
}

// G3, F43: TestClientBehindProxies checks whom a request is counted for.
func TestClientBehindProxies(t *testing.T) {
	rows, err := os.ReadFile("testdata/clients.rows")
	ledgertest.Must(t, err)
	for row := range strings.Lines(string(rows)) {
		asked, want, ok := strings.Cut(strings.TrimSpace(row), " => ")
		if !ok {
			continue
		}
		lines := strings.Split(asked, " | ")
		id := testIdentity()
		var h fasthttp.RequestHeader
		for _, line := range lines[1:] {
			h.Add("X-Forwarded-For", line)
		}
		got := id.ClientOf(id.PeerOf(&net.TCPAddr{IP: net.ParseIP(lines[0]), Port: 9}), &h)
		client := got.Key.String()
		if got.Exempt {
			client += " exempt"
		}
		ledgertest.Equal(t, client, want, "%s: client", asked)
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
		ledgertest.Equal(t, id.ClientOf(id.PeerOf(&net.TCPAddr{IP: net.ParseIP("192.0.2.1")}), &h).Key.String(), "192.0.2.1", "%q: an untrusted peer", line)
		got := id.ClientOf(id.PeerOf(&net.TCPAddr{IP: net.ParseIP("10.0.0.1")}), &h)
		if !got.Key.IsValid() || got.Key.Is4In6() || got.Key.Zone() != "" || got.Key != id.clientAt(got.Key).Key {
			t.Errorf("%q: client %s is no client's key", line, got.Key)
		}
	})
}
