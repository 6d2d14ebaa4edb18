package main

import (
	"fmt"
	"io"
	"log/slog"
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

// door is where something of a node is reached.
type door struct{ name, url, beside string }

// doors returns what a person or a program may ask a node for.
func doors(public, ops, rpc site) []door {
	base := public.url("http") + "/api"
	all := []door{
		{name: "REST", url: base + "/status"}, {name: "latest", url: base + "/blocks/latest"},
		{name: "WebSocket", url: public.url("ws") + "/api/ws/accounts"}, {name: "OpenAPI", url: base + "/openapi.json"},
		{name: "console", url: public.url("http") + "/"}, {name: "manual", url: public.url("http") + "/docs"},
	}
	if rpc.addr != nil {
		all = append(all, door{name: "JSON-RPC", url: rpc.url("http") + "/"})
	}
	if ops.addr != nil {
		all = append(all, door{"operators", ops.url("http") + "/metrics", "  /livez  /readyz"})
	}
	return all
}

// logDoors tells the doors as a message, for programs that read the log.
func logDoors(logger *slog.Logger, source string, all []door) {
	args := []any{"source", source}
	for _, d := range all {
		args = append(args, strings.ToLower(d.name), d.url)
	}
	logger.Info("listening", args...)
}

// banner tells a person where to look first.
func banner(w io.Writer, public site, source string, all []door, samples []ledger.Pubkey) {
	var b strings.Builder
	fmt.Fprintf(&b, "\nledgerd %s follows %s\n\n", build.Version, source)
	for _, d := range all {
		fmt.Fprintf(&b, "  %-10s %s%s\n", d.name, d.url, d.beside)
	}
	if len(samples) > 0 {
		fmt.Fprintf(&b, "\n  keys to try:\n")
		base := public.url("http") + "/api"
		if scheme, _, _ := strings.Cut(base, ":"); public.addr.Network() == "unix" {
			base = "--unix-socket " + public.addr.String() + " " + scheme + "://localhost/api"
		}
		for _, key := range samples {
			fmt.Fprintf(&b, "    curl %s/account/%s\n", base, key)
		}
	}
	fmt.Fprintln(w, b.String())
}
