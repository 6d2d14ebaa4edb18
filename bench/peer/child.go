package peer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"syscall"
)

// toldFile is where a peer is told, in its directory, what to answer, if it answers anything.
const toldFile = "told.json"

// told is what such a peer is told.
type told struct {
	Answer   Answer
	Accounts int
}

// startSelf starts a peer that is this program again, and that reads what comes from a file, if any.
func startSelf(ctx context.Context, c *Config, name string, in *os.File) (*Server, error) {
	s, err := startProgram(ctx, c, append(slices.Clone(c.Self), name), in, func(dir string, address netip.AddrPort) ([]string, error) {
		text, err := json.Marshal(told{c.Answer, c.Accounts})
		return []string{address.String(), dir}, errors.Join(err, os.WriteFile(filepath.Join(dir, toldFile), text, 0o600))
	})
	if err == nil {
		s.Version = runtime.Version()
	}
	return s, err
}

// startTold starts one that is told the answer, and how many records there are.
func startTold(ctx context.Context, c *Config, p *Peer) (*Server, error) {
	return startSelf(ctx, c, p.Name, nil)
}

// Serve is what a peer runs that is this program: it serves at an address, with what its directory and its standard input tell. SIGTERM
// and SIGINT end the program at once.
func Serve(name, address, dir string) error {
	signal.Reset(syscall.SIGTERM, os.Interrupt)
	var t told
	text, err := os.ReadFile(filepath.Join(dir, toldFile))
	if err = errors.Join(err, json.Unmarshal(text, &t)); err != nil {
		return fmt.Errorf("cannot read what to answer: %w", err)
	}
	var serve func(net.Listener) error
	switch name {
	case "raw":
		serve = func(ln net.Listener) error { return serveRaw(ln, os.Stdin) }
	case "bare":
		serve = bare(&t).Serve
	case "nethttp":
		serve = netHTTP(&t).Serve
	default:
		return fmt.Errorf("there is no peer %q", name)
	}
	ln, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	return serve(ln)
}
