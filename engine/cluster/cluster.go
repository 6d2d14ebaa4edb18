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
	// requestTimeout is how long one request to JetStream may take. A server that leads what is asked for answers within
	// milliseconds; a vote about a new one takes seconds, and the request is then made again.
	requestTimeout  = 2 * time.Second
	reconnectWait   = 250 * time.Millisecond
	reconnectJitter = 250 * time.Millisecond
	pingInterval    = 2 * time.Second // two without an answer and the connection is given up
	connectTimeout  = 2 * time.Second
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

	pace pace

	mu       sync.Mutex
	ledgerID string // of the stream, once known
	faults   map[string]string

	log     *Log
	process string          // of this process alone
	peers   map[string]peer // other nodes that sent a heartbeat, by process: the newest one. mu guards it
	wrote   term            // the newest that was heard of. mu guards it
}

// pace is how long a node waits for what; tests wait less.
type pace struct {
	gone, missing time.Duration // goneFor, missingFor
	look          time.Duration // lookInterval
	pause, ack    time.Duration // longestPause, ackTimeout
}

// Open returns a connection to a cluster. No server needs to be there: it is connected to as soon as one is, and again
// whenever it was lost.
func Open(config Config) (*Cluster, error) {
	config.Metrics, config.Logger = cmp.Or(config.Metrics, metrics.NewSet()), cmp.Or(config.Logger, slog.Default())
	config.Replicas = cmp.Or(config.Replicas, defaultReplicas)
	c := &Cluster{
		config: config, logger: config.Logger, ledgerID: config.LedgerID, faults: make(map[string]string), process: rand.Text(), peers: make(map[string]peer),
	}
	c.pace = pace{gone: goneFor, missing: missingFor, look: lookInterval, pause: longestPause, ack: ackTimeout}
	c.stats.register(config.Metrics)
	c.ctx, c.end = context.WithCancel(context.Background())
	var err error
	if c.conn, err = nats.Connect("", c.options()...); err != nil {
		c.end()
		return nil, fmt.Errorf("cannot connect to the cluster: %w", err)
	}
	if c.js, err = c.config.jetStream(c.conn); err != nil {
		c.end()
		c.conn.Close()
		return nil, fmt.Errorf("cannot use JetStream: %w", err)
	}
	c.log = newLog(c)
	if config.MayWrite {
		c.running.Go(c.log.lease.run)
	}
	c.running.Go(c.watchServers)
	c.showGauges(config.Metrics)
	if err := c.startHeartbeats(); err != nil {
		c.Close()
		return nil, fmt.Errorf("cannot listen to the other nodes: %w", err)
	}
	return c, nil
}

// jetStream returns the JetStream that holds the log.
func (c *Config) jetStream(conn *nats.Conn) (jetstream.JetStream, error) {
	patience := jetstream.WithDefaultTimeout(requestTimeout)
	switch {
	case c.Domain != "":
		return jetstream.NewWithDomain(conn, c.Domain, patience)
	case c.APIPrefix != "":
		return jetstream.NewWithAPIPrefix(conn, c.APIPrefix, patience)
	}
	return jetstream.New(conn, patience)
}

// Placement returns which servers are to hold the stream and what lies beside it, nil for any.
func (c *Config) Placement() *jetstream.Placement {
	if len(c.Tags) == 0 {
		return nil
	}
	return &jetstream.Placement{Tags: c.Tags}
}

func (c *Cluster) options() []nats.Option {
	options := []nats.Option{
		func(o *nats.Options) error { o.Servers = c.config.Servers; return nil },
		nats.Name("ledgerd " + c.config.NodeID), nats.RetryOnFailedConnect(true), nats.MaxReconnects(-1),
		nats.ReconnectWait(reconnectWait), nats.ReconnectJitter(reconnectJitter, reconnectJitter),
		nats.PingInterval(pingInterval), nats.MaxPingsOutstanding(2), nats.Timeout(connectTimeout),
		// Nothing is kept to be sent later: whoever publishes learns at once that there is no connection.
		nats.ReconnectBufSize(-1),
		nats.IgnoreAuthErrorAbort(),
		nats.ConnectHandler(func(conn *nats.Conn) {
			c.logger.Info("connected to the cluster", "server", conn.ConnectedServerName())
		}),
		nats.ReconnectHandler(func(conn *nats.Conn) {
			c.stats.reconnects.Inc()
			c.logger.Info("connected to the cluster again", "server", conn.ConnectedServerName())
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
	user := c.config.User
	if password, ok := user.Password(); ok {
		options = append(options, nats.UserInfo(user.Username(), password))
	} else if user != nil {
		options = append(options, nats.Token(user.Username()))
	}
	if c.config.Credentials != "" {
		options = append(options, nats.UserCredentials(c.config.Credentials))
	}
	if c.config.TLS != nil {
		options = append(options, nats.Secure(c.config.TLS))
	}
	return options
}

// Close gives up the lease, ends what runs, and disconnects. Whoever waits in a call gets an error.
func (c *Cluster) Close() {
	c.end()
	c.running.Wait()
	c.conn.Close()
}

// Log returns the log that the nodes share.
func (c *Cluster) Log() *Log { return c.log }

// Retry is RetryWithin for requests that take a moment.
func (c *Cluster) Retry(ctx context.Context, what string, attempt func(context.Context) error) error {
	return c.RetryWithin(ctx, requestTimeout, what, attempt)
}

// RetryWithin repeats an attempt, which may take d, with pauses, until it succeeds, its error is permanent, ctx ends, or the
// cluster is closed. Trouble says meanwhile what does not succeed. An unlikely error is permanent once it has lasted.
func (c *Cluster) RetryWithin(ctx context.Context, d time.Duration, what string, attempt func(context.Context) error) error {
	ctx, end := context.WithCancel(ctx)
	defer end()
	defer context.AfterFunc(c.ctx, end)()
	defer c.clearFault(what, false)
	var lasts confirmer
	for pause := firstPause; ; pause = min(2*pause, c.pace.pause) {
		bounded, cancel := context.WithTimeout(ctx, d)
		err := attempt(bounded)
		cancel()
		if err == nil {
			c.clearFault(what, true)
		}
		if u, odd := err.(unlikely); !odd {
			lasts = confirmer{}
		} else if lasts.persisted(c.pace.gone) {
			err = u.error
		}
		if err == nil || permanent(err) {
			return err
		}
		if ctx.Err() == nil {
			c.setFault(what, err)
		}
		if err := c.sleep(ctx, pause); err != nil {
			return err
		}
	}
}

// sleep waits, or returns why not.
func (c *Cluster) sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
	case <-c.ctx.Done():
	}
	if c.ctx.Err() != nil {
		return ErrClosed
	}
	return ctx.Err()
}

// setFault remembers what does not succeed, until clear.
func (c *Cluster) setFault(what string, err error) {
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, nats.ErrTimeout):
		err = errors.New("no answer")
	case errors.Is(err, nats.ErrReconnectBufExceeded):
		err = errors.New("no connection")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.faults[what] == "" {
		c.logger.Warn("the cluster does not answer as it should", "what", what, "error", err)
	}
	c.faults[what] = fmt.Sprintf("%s: %v", what, err)
}

// clearFault forgets a fault, because what did not succeed did now, or is not attempted any more.
func (c *Cluster) clearFault(what string, succeeded bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if succeeded && c.faults[what] != "" {
		c.logger.Info("the cluster answers again", "what", what)
	}
	delete(c.faults, what)
}
