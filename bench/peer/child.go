package peer

import (
	"context"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"syscall"
	"time"

	"ledgerd/bench/proc"
)

// stopPatience is how long a process may take to end when it is asked to.
const stopPatience = 10 * time.Second

// child is a peer that is this program again: it writes its address to stdout, is fed through its stdin, and ends with that.
type child struct {
	*proc.Process
	feed io.WriteCloser
	addr string
}

var address = regexp.MustCompile(`^(\S+)\n`)

// startChild runs Serve with a name, in a process of its own that ends with ctx at the latest.
func startChild(ctx context.Context, self []string, name string) (*child, error) {
	in, feed, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer in.Close()
	c := &child{feed: feed}
	c.Process, err = proc.Launch(ctx, proc.Command{Words: append(slices.Clip(self), name), Stdin: in})
	if err != nil {
		_ = feed.Close()
		return nil, err
	}
	said, err := c.Await(ctx, address)
	if err != nil {
		c.Kill()
		_ = feed.Close()
		return nil, fmt.Errorf("it does not say where it listens: %w", err)
	}
	c.addr = said[1]
	return c, nil
}

// Stop implements Server.
func (c *child) Stop() error {
	_ = c.feed.Close() // all of it was read, or is not wanted any more
	return stop(c.Process, syscall.SIGTERM)
}

// stop asks a process to end, and kills one that does not.
func stop(p *proc.Process, signal syscall.Signal) error {
	ctx, cancel := context.WithTimeout(context.Background(), stopPatience)
	defer cancel()
	return p.Stop(ctx, signal)
}
