package peer

import (
	"context"
	"fmt"

	"ledgerd/bench/listen"
)

// Config is what peers are started with.
type Config struct {
	Self     []string // the command that runs Serve when a peer's name is added
	Dir      string   // for files; nothing is left there
	Messages [][]byte // the batch
}

// Peer is a kind of service that tells everybody everything.
type Peer struct {
	Name  string // raw, nats or hub
	start func(ctx context.Context, c *Config) (Server, error)
}

// Peers are all there are, the simplest first.
var Peers = []Peer{{"raw", startRaw}, {"nats", startNATS}, {"hub", startHub}}

// Start starts one, which ends with ctx at the latest. It returns an *AbsentError if the program it needs is not there.
func (p *Peer) Start(ctx context.Context, c Config) (Server, error) {
	s, err := p.start(ctx, &c)
	if err != nil {
		return nil, fmt.Errorf("cannot start peer %s: %w", p.Name, err)
	}
	return s, nil
}

// AbsentError says that a program is not there.
type AbsentError struct{ Program, How string }

// Error says how to get it.
func (e *AbsentError) Error() string { return fmt.Sprintf("there is no %s: %s", e.Program, e.How) }

// Server is a running peer. One goroutine publishes.
type Server interface {
	// Dial connects a subscriber, which receives all that is published from then on.
	Dial(ctx context.Context) (listen.Stream, error)
	// Publish hands the server one batch more. It waits for the server to read it.
	Publish() error
	// BatchFrames is how many frames a batch is to each subscriber.
	BatchFrames() int
	Pid() int
	// Stop ends the process and waits for it. What is on the way is lost.
	Stop() error
}
