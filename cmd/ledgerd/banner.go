package main

import (
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"

	"ledgerd/cmd/internal/build"
	"ledgerd/engine/ledger"
)

// site is where a listener is reached.
type site struct {
	addr      net.Addr // nil: nowhere
	encrypted bool
}

// url returns the address with a scheme, http or ws, or what that is with TLS. A Unix socket stands in it as in the configuration of nginx.
func (s site) url(scheme string) string {
	if s.encrypted {
		scheme += "s"
	}
	if s.addr.Network() == "unix" {
		return scheme + "://unix:" + s.addr.String() + ":"
	}
	if at, ok := s.addr.(*net.TCPAddr); ok && at.IP.IsUnspecified() { // no browser goes there
		return scheme + "://" + net.JoinHostPort("localhost", strconv.Itoa(at.Port))
	}
	return scheme + "://" + s.addr.String()
}

// banner tells a person where to look first.
func banner(w io.Writer, public, ops, rpc site, source string, samples []ledger.Pubkey) {
	base := public.url("http") + "/api"
	var b strings.Builder
	fmt.Fprintf(&b, "\nledgerd %s follows %s\n\n", build.Version, source)
	fmt.Fprintf(&b, "  REST       %s/status\n", base)
	fmt.Fprintf(&b, "  latest     %s/blocks/latest\n", base)
	fmt.Fprintf(&b, "  WebSocket  %s/api/ws/accounts\n", public.url("ws"))
	fmt.Fprintf(&b, "  OpenAPI    %s/openapi.json\n", base)
	fmt.Fprintf(&b, "  console    %s/\n", public.url("http"))
	fmt.Fprintf(&b, "  manual     %s/docs\n", public.url("http"))
	if rpc.addr != nil {
		fmt.Fprintf(&b, "  JSON-RPC   %s/\n", rpc.url("http"))
	}
	if ops.addr != nil {
		fmt.Fprintf(&b, "  operators  %s/metrics  /livez  /readyz\n", ops.url("http"))
	}
	if len(samples) > 0 {
		fmt.Fprintf(&b, "\n  keys to try:\n")
		if scheme, _, _ := strings.Cut(base, ":"); public.addr.Network() == "unix" {
			base = "--unix-socket " + public.addr.String() + " " + scheme + "://localhost/api"
		}
		for _, key := range samples {
			fmt.Fprintf(&b, "    curl %s/account/%s\n", base, key)
		}
	}
	fmt.Fprintln(w, b.String())
}
