package peer

import (
	"context"
	"fmt"
)

// readBytes is the most that a subscriber reads at once. With less calls cost more, with more the
// buffers of all leave the caches.
const readBytes = 64 << 10

// Config is what peers are started with.
type Config struct {
	Self     []string // the command that runs Serve when a peer's name is added
	Dir      string   // for files; nothing is left there
	Messages [][]byte // the batch
}

// Peer is a kind of service.
type Peer struct {
	Name  string // raw, hub or nats
	About string // one line
	start func(ctx context.Context, c *Config) (Server, error)
}

// Peers are all there are, the simplest first.
var Peers = []Peer{
	{"raw", "blocks of 64 KiB, full of frames, written to plain TCP sockets, a goroutine each", startRaw},
	{"nats", "nats-server and subscribers of its text protocol", startNATS},
	{"hub", "a WebSocket hub with a channel of 256 messages and a goroutine for each client", startHub},
}

// Start starts one, which ends with ctx at the latest. It returns an *AbsentError if the
// program it needs is not there.
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
	// Dial connects a subscriber.
	Dial(ctx context.Context) (Subscriber, error)
	// Publish hands the server one batch more to tell. It waits for the server to read it.
	Publish() error
	// BatchFrames is how many frames a batch is to each subscriber.
	BatchFrames() int
	// Pid is the process.
	Pid() int
	// Stop ends the process and waits for it. What is on the way is lost.
	Stop() error
}

// Subscriber is a connection that hears everything.
type Subscriber interface {
	// Drain reads until the connection ends, and tells what came: bytes of the socket and the
	// whole frames in them.
	Drain(visit func(bytes, frames int)) error
	Close() error
}
