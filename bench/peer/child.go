package peer

import (
	"context"
	"errors"
	"os"
	"regexp"
	"slices"
	"syscall"
	"time"

	"ledgerd/bench/proc"
)

const (
	// startPatience is how long a peer may take to listen.
	startPatience = 20 * time.Second
	// endPatience is how long a peer may take to end.
	endPatience = 10 * time.Second
)

// child is a peer that is this program again: it says where it listens in the first line of
// its stdout, is fed batches through its stdin, and ends with that.
type child struct {
	*proc.Process
	feed   *os.File
	addr   string
	batch  []byte
	frames int // of a batch
}

var firstLine = regexp.MustCompile(`^(\S+)\n`)

func startChild(ctx context.Context, c *Config, name string) (*child, error) {
	in, feed, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	p, err := proc.Launch(ctx, proc.Command{Words: append(slices.Clone(c.Self), name), Stdin: in})
	_ = in.Close()
	if err != nil {
		return nil, errors.Join(err, feed.Close())
	}
	s := &child{Process: p, feed: feed}
	ctx, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	said, err := p.Await(ctx, firstLine)
	if err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	s.addr = said[1]
	return s, nil
}

// BatchFrames implements Server.
func (s *child) BatchFrames() int { return s.frames }

// Publish implements Server.
func (s *child) Publish() error {
	_, err := s.feed.Write(s.batch)
	return err
}

// Stop implements Server.
func (s *child) Stop() error {
	_ = s.feed.Close() // all of it was read, or is not wanted any more
	return end(s.Process)
}

// end asks a process to end, and waits until it has.
func end(p *proc.Process) error {
	ctx, cancel := context.WithTimeout(context.Background(), endPatience)
	defer cancel()
	return p.Stop(ctx, syscall.SIGTERM)
}
