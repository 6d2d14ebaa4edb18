package ratelimit

import (
	"bytes"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/valyala/fasthttp"
)

// Peer is the other end of a connection: a client, or a proxy that forwards the requests of
// many clients.
type Peer struct {
	Client
	Trusted bool // X-Forwarded-For of this peer is believed
}

// ClientBits is the length of the IPv6 prefix that is one client: one subscriber commonly holds all of it.
const ClientBits = 64

// Client is the unit that requests and connections are counted for.
type Client struct {
	// Key is the IPv4 address, or the first address of the IPv6 client's ClientBits. The zero Addr stands for peers without an
	// IP address, those of a Unix socket, all together.
	//
	// A caller with an API key has an address with a zone, which no connection has; a Limiter, which looks at no zones, is not asked for it.
	Key     netip.Addr
	Addr    netip.Addr // the whole address, which is written to logs; nothing counts for it
	Exempt  bool       // from rate limits and connection caps
	Sockets int        // WebSockets it may have; 0: as many as any client
	// Revoked is set when it may have none any more; nil: it always may.
	Revoked *atomic.Bool
}

// UnixPeers stands in the lists of an Identity for the peers of a Unix socket, which have no address.
var UnixPeers netip.Prefix

// Identity tells clients and peers apart by their addresses. NewIdentity makes one.
type Identity struct {
	trusted []netip.Prefix
	exempt  atomic.Pointer[[]netip.Prefix]
}

// NewIdentity returns an Identity that trusts some proxies, and exempts some networks.
func NewIdentity(trustedProxies, exempt []netip.Prefix) *Identity {
	i := &Identity{trusted: trustedProxies}
	i.SetExempt(exempt)
	return i
}

// SetExempt changes who is exempt: new connections, and requests behind trusted proxies.
func (i *Identity) SetExempt(networks []netip.Prefix) { i.exempt.Store(&networks) }

// Favors reports whether a network holds an address that is exempt, or of a trusted proxy.
func (i *Identity) Favors(network netip.Prefix) bool {
	return slices.ContainsFunc(*i.exempt.Load(), network.Overlaps) || slices.ContainsFunc(i.trusted, network.Overlaps)
}

// PeerOf returns the peer with a socket address.
func (i *Identity) PeerOf(a net.Addr) Peer {
	var addr netip.Addr
	if tcp, ok := a.(*net.TCPAddr); ok {
		addr = tcp.AddrPort().Addr().Unmap().WithZone("")
	}
	return Peer{Client: i.clientAt(addr), Trusted: within(addr, i.trusted)}
}

// clientAt returns the client with an address.
func (i *Identity) clientAt(addr netip.Addr) Client {
	c := Client{Key: addr, Addr: addr, Exempt: within(addr, *i.exempt.Load())}
	if addr.Is6() {
		// A prefix of that length always exists.
		c.Key = netip.PrefixFrom(addr, ClientBits).Masked().Addr()
	}
	return c
}

// ClientOf returns the client of a request: the peer, or behind a trusted proxy the
// right-most hop of X-Forwarded-For that is no trusted proxy itself; where all are, the
// left-most. If a hop that has to be read is no address, the peer is the client.
func (i *Identity) ClientOf(p Peer, h *fasthttp.RequestHeader) Client {
	if !p.Trusted {
		return p.Client
	}
	found := p.Client
	lines := h.PeekAll("X-Forwarded-For")
	for _, line := range slices.Backward(lines) {
		for len(line) > 0 {
			comma := bytes.LastIndexByte(line, ',')
			addr, ok := parseHop(line[comma+1:])
			if !ok {
				return p.Client
			}
			found = i.clientAt(addr)
			if !within(addr, i.trusted) {
				return found
			}
			line = line[:max(comma, 0)]
		}
	}
	return found
}

// parseHop reads one hop: an address, or as some proxies write it, one with a port.
func parseHop(hop []byte) (netip.Addr, bool) {
	s := strings.Trim(string(hop), " \t")
	addr, err := netip.ParseAddr(s)
	if err != nil {
		withPort, err := netip.ParseAddrPort(s)
		if err != nil {
			return netip.Addr{}, false
		}
		addr = withPort.Addr()
	}
	return addr.Unmap().WithZone(""), true
}

func within(addr netip.Addr, prefixes []netip.Prefix) bool {
	if !addr.IsValid() {
		return slices.Contains(prefixes, UnixPeers)
	}
	return slices.ContainsFunc(prefixes, func(p netip.Prefix) bool { return p.Contains(addr) })
}
