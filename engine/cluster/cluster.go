package cluster

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/VictoriaMetrics/metrics"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const (
	// requestPatience is how long one request to JetStream may take. A server that leads what is asked for answers within
	// milliseconds; a vote about a new one takes seconds, and the request is then made again.
	requestPatience = 2 * time.Second
	reconnectWait   = 250 * time.Millisecond
	reconnectJitter = 250 * time.Millisecond
	pingInterval    = 2 * time.Second // two without an answer and the connection is given up
	connectPatience = 2 * time.Second
	// firstPause and longestPause are between two attempts at what did not succeed.
	firstPause, longestPause = 50 * time.Millisecond, time.Second
)

// Cluster is a node's connection to the others.
type Cluster struct {
	config Config
	logger *slog.Logger
	conn   *nats.Conn
	js     jetstream.JetStream
	stats  counters

	ctx     context.Context // of all goroutines
	end     context.CancelFunc
	running sync.WaitGroup
	closing sync.Once

	goneFor, missingFor time.Duration // those of the package; tests have less patience

	mu       sync.Mutex
	ledgerID string // of the stream, once known
	trouble  map[string]string
	maker    *lease // nil: this node makes no snapshots

	log     *Log
	process string // of this process alone
	peers   peers
}

// Open returns a connection to a cluster. No server needs to be there: it is connected to as soon as one is, and again
// whenever it was lost.
func Open(config Config) (*Cluster, error) {
	if err := config.check(); err != nil {
		return nil, fmt.Errorf("cannot share a log: %w", err)
	}
	config.Metrics, config.Logger = cmp.Or(config.Metrics, metrics.NewSet()), cmp.Or(config.Logger, slog.Default())
	config.Replicas = cmp.Or(config.Replicas, defaultReplicas)
	c := &Cluster{config: config, logger: config.Logger, ledgerID: config.LedgerID, trouble: make(map[string]string), process: rand.Text()}
	c.goneFor, c.missingFor = goneFor, missingFor
	c.peers.seen = make(map[string]time.Time)
	c.stats.register(config.Metrics)
	c.ctx, c.end = context.WithCancel(context.Background())
	var err error
	if c.conn, err = nats.Connect("", c.options()...); err != nil {
		c.end()
		return nil, fmt.Errorf("cannot connect to the cluster: %w", err)
	}
	if c.js, err = jetstream.New(c.conn, jetstream.WithDefaultTimeout(requestPatience)); err != nil {
		c.end()
		c.conn.Close()
		return nil, fmt.Errorf("cannot use JetStream: %w", err)
	}
	c.log = newLog(c)
	c.showGauges(config.Metrics)
	if err := c.startHeartbeats(); err != nil {
		c.Close()
		return nil, fmt.Errorf("cannot listen to the other nodes: %w", err)
	}
	if config.MayMakeSnapshots {
		c.maker = c.newLease("snapshots")
		c.maker.start()
	}
	return c, nil
}

func (c *Cluster) options() []nats.Option {
	addresses, user := c.config.access()
	options := []nats.Option{
		func(o *nats.Options) error { o.Servers = addresses; return nil },
		nats.Name("ledgerd " + c.config.NodeID), nats.RetryOnFailedConnect(true), nats.MaxReconnects(-1),
		nats.ReconnectWait(reconnectWait), nats.ReconnectJitter(reconnectJitter, reconnectJitter),
		nats.PingInterval(pingInterval), nats.MaxPingsOutstanding(2), nats.Timeout(connectPatience),
		// Nothing is kept to be sent later: whoever publishes learns at once that there is no connection.
		nats.ReconnectBufSize(-1),
		nats.IgnoreAuthErrorAbort(),
		nats.ConnectHandler(func(conn *nats.Conn) { c.connected(conn, "connected to the cluster") }),
		nats.ReconnectHandler(func(conn *nats.Conn) {
			c.stats.reconnects.Inc()
			c.connected(conn, "connected to the cluster again")
		}),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			if c.ctx.Err() == nil {
				c.logger.Warn("lost the connection to the cluster", "error", err)
			}
		}),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
			c.stats.asyncErrors.Add(1)
			c.logger.Warn("the cluster reports an error", "error", err)
		}),
	}
	if user != nil {
		options = append(options, user)
	}
	if c.config.Credentials != "" {
		options = append(options, nats.UserCredentials(c.config.Credentials))
	}
	if c.config.TLS != nil {
		options = append(options, nats.Secure(c.config.TLS))
	}
	return options
}

func (c *Cluster) connected(conn *nats.Conn, what string) {
	c.logger.Info(what, "server", conn.ConnectedServerName())
}

// Close gives up the leases, ends what runs, and disconnects. Whoever waits in a call gets an error.
func (c *Cluster) Close() {
	c.closing.Do(func() {
		c.end()
		c.running.Wait()
		c.conn.Close()
	})
}

// Log returns the log that the nodes share.
func (c *Cluster) Log() *Log { return c.log }

// request runs one request to JetStream with a bounded patience.
func (c *Cluster) request(ctx context.Context, ask func(context.Context) error) error {
	return c.requestWithin(ctx, requestPatience, ask)
}

func (c *Cluster) requestWithin(ctx context.Context, timeout time.Duration, ask func(context.Context) error) error {
	if c.ctx.Err() != nil {
		return ErrClosed
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	stop := context.AfterFunc(c.ctx, cancel)
	defer stop()
	if err := ask(ctx); err != nil {
		if c.ctx.Err() != nil {
			return ErrClosed
		}
		return err
	}
	return nil
}

// insist is Retry for one request.
func (c *Cluster) insist(ctx context.Context, what string, attempt func(context.Context) error) error {
	return c.Retry(ctx, what, requestPatience, attempt)
}

// Retry repeats an attempt, which may take so long, with pauses, until it succeeds, its error is permanent, or ctx ends. Trouble
// says meanwhile what does not succeed.
func (c *Cluster) Retry(ctx context.Context, what string, timeout time.Duration, attempt func(context.Context) error) error {
	defer c.forget(what)
	pause := firstPause
	for {
		err := c.requestWithin(ctx, timeout, attempt)
		if err == nil {
			c.clear(what)
		}
		if err == nil || permanent(err) {
			return err
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if !errors.Is(err, errMadeNow) {
			c.troubled(what, err)
		}
		if err := c.sleep(ctx, pause); err != nil {
			return err
		}
		pause = min(2*pause, longestPause)
	}
}

// sleep waits, or returns why not.
func (c *Cluster) sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-c.ctx.Done():
		return ErrClosed
	}
}

// troubled remembers what does not succeed, until clear.
func (c *Cluster) troubled(what string, err error) {
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, nats.ErrTimeout):
		err = errors.New("no answer")
	case errors.Is(err, nats.ErrReconnectBufExceeded):
		err = errors.New("no connection")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.trouble[what] == "" {
		c.logger.Warn("the cluster does not answer as it should", "what", what, "error", err)
	}
	c.trouble[what] = fmt.Sprintf("%s: %v", what, err)
}

func (c *Cluster) clear(what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.trouble[what] != "" {
		c.logger.Info("the cluster answers again", "what", what)
		delete(c.trouble, what)
	}
}

// forget does what clear does, and tells nobody.
func (c *Cluster) forget(what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.trouble, what)
}
