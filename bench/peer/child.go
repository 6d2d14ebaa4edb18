package peer

import (
	"context"
	"encoding/gob"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"regexp"
	"runtime"
	"slices"

	"ledgerd/bench/proc"
)

var firstLine = regexp.MustCompile(`^(\S+)\n`)

// startSelf starts a peer that is this program again: it says where it listens in the first line of its stdout, is fed
// through its stdin, and ends with that.
func startSelf(ctx context.Context, c *Config, name string) (*Server, error) {
	in, feed, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	p, err := proc.Launch(ctx, proc.Command{Words: append(slices.Clone(c.Self), name), Stdin: in})
	_ = in.Close()
	if err != nil {
		return nil, errors.Join(err, feed.Close())
	}
	s := &Server{Version: runtime.Version(), pids: []int{p.Pid()}, feed: feed, stop: []func() error{func() error {
		_ = feed.Close() // all of it was read, or is not wanted any more
		return end(p)
	}}}
	ctx, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	said, err := p.Await(ctx, firstLine)
	if err == nil {
		s.Address, err = netip.ParseAddrPort(said[1])
	}
	if err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	return s, nil
}

// told is what a peer is told that answers.
type told struct {
	Answer   Answer
	Accounts int
}

// startTold starts one that is told the answer, and how many records there are.
func startTold(ctx context.Context, c *Config, p *Peer) (*Server, error) {
	s, err := startSelf(ctx, c, p.Name)
	if err != nil {
		return nil, err
	}
	if err = gob.NewEncoder(s.feed).Encode(told{c.Answer, c.Accounts}); err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	return s, nil
}

// hear reads what startTold tells.
func hear(in io.Reader) (t told, err error) {
	err = gob.NewDecoder(in).Decode(&t)
	return t, err
}

// serveUntil serves until in ends: then nobody wants it any more.
func serveUntil(in io.Reader, ln net.Listener, serve func(net.Listener) error) error {
	go func() {
		_, _ = io.Copy(io.Discard, in)
		_ = ln.Close()
	}()
	if err := serve(ln); !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}
