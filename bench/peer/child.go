package peer

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"syscall"
)

// told is what a peer is told that is this program again: what to answer, if it answers anything.
type told struct {
	Answer   Answer
	Accounts int
}

// startSelf starts such a peer, which reads what comes from a file, if any.
func (s *Server) startSelf(ctx context.Context, c *Config, name string, in *os.File) error {
	s.Version = runtime.Version()
	return s.startProgram(ctx, c, append(slices.Clone(c.Self), name), in, func(string) ([]string, error) {
		text, err := json.Marshal(told{c.Answer, c.Accounts})
		return []string{s.Address.String(), string(text)}, err
	})
}

// startTold starts one that answers.
func startTold(ctx context.Context, c *Config, name string, s *Server) error {
	return s.startSelf(ctx, c, name, nil)
}

// Serve is what a peer runs that is this program: it serves at an address, with what it is told in JSON and by its standard input. SIGTERM
// and SIGINT end the program at once.
func Serve(name, address, text string) error {
	signal.Reset(syscall.SIGTERM, os.Interrupt)
	var t told
	if err := json.Unmarshal([]byte(text), &t); err != nil {
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
