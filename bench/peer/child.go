package peer

import (
	"bufio"
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

// startTold starts one that is told the answer, and the records if it looks them up.
func startTold(ctx context.Context, c *Config, p *Peer) (*Server, error) {
	s, err := startSelf(ctx, c, p.Name)
	if err != nil {
		return nil, err
	}
	out := bufio.NewWriterSize(s.feed, 64<<10)
	e := gob.NewEncoder(out)
	err = e.Encode(c.Answer)
	for i := 0; p.LooksUp && i < c.Records.Count && err == nil; i++ {
		err = e.Encode(c.Records.Record(i))
	}
	if err = errors.Join(err, e.Encode(AccountRecord{}), out.Flush()); err != nil { // a record of nothing ends them
		return nil, errors.Join(err, s.Stop())
	}
	return s, nil
}

// hear reads what startTold tells.
func hear(in io.Reader) (answer Answer, records []AccountRecord, err error) {
	d := gob.NewDecoder(bufio.NewReaderSize(in, 64<<10))
	err = d.Decode(&answer)
	for err == nil {
		var r AccountRecord
		if err = d.Decode(&r); r == (AccountRecord{}) {
			break
		}
		records = append(records, r)
	}
	return answer, records, err
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
