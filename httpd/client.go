package httpd

import (
	"bytes"
	"net"
	"net/netip"
	"slices"
	"strings"

	"github.com/valyala/fasthttp"
)

// peer is who is at the other end of a connection: a client, or a proxy that speaks for
// many.
type peer struct {
	client
	trusted bool // X-Forwarded-For of this peer is believed
}

// client is who a request is counted for.
type client struct {
	// key is the IPv4 address, or the IPv6 address with its lower 64 bits zero: one
	// subscriber commonly holds a whole /64. The zero Addr stands for peers without an
	// IP address, all together.
	key    netip.Addr
	exempt bool // from rate limits and connection caps
}

// identity decides who a peer and a client are.
type identity struct {
	trustedProxies []netip.Prefix
	exempt         []netip.Prefix
}

// peerOf returns the peer with a socket address.
func (i *identity) peerOf(a net.Addr) peer {
	var addr netip.Addr
	if tcp, ok := a.(*net.TCPAddr); ok {
		addr = tcp.AddrPort().Addr().Unmap().WithZone("")
	}
	return peer{client: i.clientAt(addr), trusted: within(addr, i.trustedProxies)}
}

// clientAt returns the client with an address.
func (i *identity) clientAt(addr netip.Addr) client {
	c := client{key: addr, exempt: within(addr, i.exempt)}
	if addr.Is6() {
		// A /64 of a valid IPv6 address always exists.
		c.key = netip.PrefixFrom(addr, 64).Masked().Addr()
	}
	return c
}

// clientOf returns the client of a request: the peer, or behind a trusted proxy the
// right-most hop of X-Forwarded-For that is no trusted proxy itself; where all are, the
// left-most. If a hop that has to be read is no address, the peer is the client.
func (i *identity) clientOf(p peer, h *fasthttp.RequestHeader) client {
	if !p.trusted {
		return p.client
	}
	found := p.client
	lines := h.PeekAll("X-Forwarded-For")
	for _, line := range slices.Backward(lines) {
		for len(line) > 0 {
			comma := bytes.LastIndexByte(line, ',')
			addr, ok := parseHop(line[comma+1:])
			if !ok {
				return p.client
			}
			found = i.clientAt(addr)
			if !within(addr, i.trustedProxies) {
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
	for _, p := range prefixes {
		if p.Contains(addr) {
			return true
		}
	}
	return false
}
