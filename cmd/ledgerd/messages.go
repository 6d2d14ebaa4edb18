package main

import (
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/alecthomas/kong"

	"ledgerd/cmd/internal/build"
	"ledgerd/engine/ledger"
	"ledgerd/engine/source/geyser"
)

// newLogger returns a logger that writes to w what level lets through, in the form that --log-format names.
func newLogger(w io.Writer, format string, level slog.Leveler) *slog.Logger {
	options := &slog.HandlerOptions{Level: level}
	if format == "json" {
		return slog.New(slog.NewJSONHandler(w, options))
	}
	return slog.New(slog.NewTextHandler(w, options))
}

// logLevel is the value of --log-level.
type logLevel struct{ slog.Level }

// UnmarshalText reads a level by its name.
func (l *logLevel) UnmarshalText(text []byte) error {
	if l.Level.UnmarshalText(text) != nil {
		return fmt.Errorf("%q must be debug, info, warn or error", text)
	}
	return nil
}

// warn tells of what a node takes, and what its operator may not have meant.
func (c *serveCommand) warn(flags []*kong.Flag, log *slog.Logger) {
	paths := []string{c.DataDir, c.TLSKey, c.LogCredentials, c.AccessLog}
	for source := c.Source; source != ""; {
		_, query, _ := strings.Cut(source, "?")
		options, _ := url.ParseQuery(query)
		paths = append(paths, options.Get("token-file"), options.Get("header-file"), options.Get("tls-key"))
		source = options.Get("rpc")
	}
	for _, path := range paths {
		if info, err := os.Stat(path); path != "" && err == nil && info.Mode().Perm()&0o007 != 0 {
			log.Warn("everybody on this machine may read this", "path", path, "mode", info.Mode().Perm().String())
		}
	}
	for _, variable := range os.Environ() {
		name, _, _ := strings.Cut(variable, "=")
		named := func(f *kong.Flag) bool { return slices.Contains(f.Envs, name) }
		if strings.HasPrefix(name, envPrefix+"_") && name != geyser.TokenVariable && !slices.ContainsFunc(flags, named) {
			log.Warn("this environment variable names no flag", "name", name)
		}
	}
}

// site is where a listener is reached.
type site struct {
	addr      net.Addr
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

// doors returns what a person or a program may ask a node for, and where that is which anybody may.
func (n *node) doors() (all []door, public site) {
	public = site{n.listener.Addr(), n.tls != nil}
	base := public.url("http") + "/api"
	all = []door{
		{name: "REST", url: base + "/status"}, {name: "latest", url: base + "/blocks/latest"},
		{name: "WebSocket", url: public.url("ws") + "/api/ws/accounts"}, {name: "OpenAPI", url: base + "/openapi.json"},
		{name: "console", url: public.url("http") + "/"}, {name: "manual", url: public.url("http") + "/docs"},
	}
	if len(n.rpcPorts) > 0 {
		all = append(all, door{name: "JSON-RPC", url: site{n.rpcPorts[0].Addr(), n.tls != nil}.url("http") + "/"})
	}
	if n.opsListener != nil {
		all = append(all, door{"operators", site{n.opsListener.Addr(), n.opsTLS != nil}.url("http") + "/metrics", "  /livez  /readyz"})
	}
	return all, public
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
