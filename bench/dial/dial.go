// Package dial connects to a server as its users do: over TLS or plainly, from several addresses in turns, to a host or to a Unix socket.
package dial

import (
	"cmp"
	"context"
	"crypto/tls"
	"net"
	"net/netip"
	"time"
)

// Dialer says how to connect. The zero value works. It is safe for concurrent use.
type Dialer struct {
	From    []netip.Addr  // the addresses to come from, in turns; none: any
	Unix    string        // a Unix socket, which is connected to whatever the address; "": none
	TLS     *tls.Config   // with the name of the server; nil: plainly
	Timeout time.Duration // of connecting, with the handshake of TLS; 0: 10 s
}

const defaultTimeout = 10 * time.Second

// Dial connects the one of many that has this index to HOST:PORT.
func (d *Dialer) Dial(ctx context.Context, index int, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(d.Timeout, defaultTimeout))
	defer cancel()
	network, plain := "tcp", net.Dialer{}
	if d.Unix != "" {
		network, address = "unix", d.Unix
	} else if len(d.From) > 0 {
		plain.LocalAddr = net.TCPAddrFromAddrPort(netip.AddrPortFrom(d.From[index%len(d.From)], 0))
	}
	if d.TLS != nil {
		secured := tls.Dialer{NetDialer: &plain, Config: d.TLS}
		return secured.DialContext(ctx, network, address)
	}
	return plain.DialContext(ctx, network, address)
}

// Loopback returns so many addresses of this machine.
func Loopback(count int) []netip.Addr {
	const each = 250
	all := make([]netip.Addr, count)
	for i := range all {
		all[i] = netip.AddrFrom4([4]byte{127, 0, byte(i / each), byte(1 + i%each)})
	}
	return all
}
