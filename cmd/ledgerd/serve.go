package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/VictoriaMetrics/metrics"
	"github.com/alecthomas/kong"
	"golang.org/x/sync/errgroup"

	"ledgerd/cmd/internal/build"
	"ledgerd/engine"
	"ledgerd/engine/cluster"
	"ledgerd/engine/cluster/exchange"
	"ledgerd/engine/datadir"
	"ledgerd/engine/figures"
	"ledgerd/engine/ledger"
	"ledgerd/engine/sequencer"
	"ledgerd/engine/source"
	"ledgerd/engine/source/upstream"
	"ledgerd/httpd"
	"ledgerd/httpd/apikey"
	"ledgerd/httpd/ops"
	"ledgerd/httpd/promtext"
	"ledgerd/httpd/ratelimit"
	"ledgerd/httpd/stream"
	"ledgerd/httpd/wire"
	"ledgerd/shard/giveway"
	"ledgerd/snapshot/wal"
)

// stopTimeout bounds the sockets' and requests' part of a clean stop. The engine stops after
// them and may take 5 s for the last snapshot; all of it is to take less than 10 s.
const stopTimeout = 4 * time.Second

// connsPerRequest is how many connections a client may make for each request that it may make.
const connsPerRequest = 10

type serveCommand struct {
	Listen    string `group:"Listeners:" help:"Address of the public listener: REST and WebSocket." default:"127.0.0.1:8080"`
	OpsListen string `group:"Listeners:" help:"Address of the operators' listener: /metrics, /livez, /readyz, /backup. Keep it private; empty turns it off." default:"127.0.0.1:8081"`
	Pprof     bool   `group:"Listeners:" help:"Serve /debug/pprof on the operators' listener."`
	tlsFlags  `group:"Listeners:"`

	Source      string `group:"Source:" help:"Where blocks come from: sim:[seed=…,…], file:PATH[,PATH…][?gaps=allow], rpc:http://HOST:PORT or geyser:http://HOST:PORT[?rpc=URL] (a live node), none." default:"sim:"`
	Fill        string `group:"Source:" help:"Accounts that are asked for and not held: off, or on-demand (fetch each once from the node; with a source that can ask it for accounts)." default:"off" enum:"off,on-demand"`
	FillUpTo    int64  `group:"Source:" help:"Accounts that are held: with so many, --fill on-demand fetches no more; 0 is any number." default:"10000000" placeholder:"N"`
	filterFlags `group:"Source:"`
	SkipVotes   bool `group:"Source:" help:"Hold no vote transactions; a source that can leave them out is not asked for them."`

	DataDir          string        `group:"Storage:" help:"Directory that belongs to this node and one ledger." default:"./data"`
	WALSync          wal.Policy    `group:"Storage:" help:"When a block counts as kept: always (before anybody sees it), interval:DURATION, off." default:"always" name:"wal-sync"`
	SnapshotInterval time.Duration `group:"Storage:" help:"How often a snapshot is taken; 0 is only on the way out and when the log grew long." default:"5m"`
	MinFreeBytes     size          `group:"Storage:" help:"Ingest pauses while less of the disk is free." default:"64MiB"`
	LogSegmentBytes  size          `group:"Storage:" help:"Size of a segment of the log." default:"64MiB" hidden:""`
	RetainSlots      uint64        `group:"Storage:" help:"Blocks and transactions of so many slots are held." default:"9000"`
	RetainBytes      size          `group:"Storage:" help:"Blocks and transactions of so many bytes are held, if that is less." default:"2GiB"`
	Shards           int           `group:"Storage:" help:"How many goroutines share the state; 0 is one a core." default:"0"`

	RateLimitMinute     int      `group:"Limits:" help:"Requests a client may make a minute; 0 is off." default:"100"`
	RateLimitHour       int      `group:"Limits:" help:"Requests a client may make an hour; 0 is off." default:"1000"`
	RateLimitExempt     prefixes `group:"Limits:" help:"Networks free of rate limits and connection caps." placeholder:"CIDR,…"`
	APIKeys             string   `group:"Limits:" help:"Callers with limits of their own: a file of keys and tiers, see ledgerd key. A running node reads it again at SIGHUP." placeholder:"FILE" name:"api-keys"`
	TrustedProxies      prefixes `group:"Limits:" help:"Proxies whose X-Forwarded-For is believed." placeholder:"CIDR,…"`
	MaxConns            int      `group:"Limits:" help:"Connections on the public listener; 0 is what the file descriptors allow." default:"0"`
	MaxConnsPerClient   int      `group:"Limits:" help:"Connections of one client." default:"100"`
	MaxAnswerBytes      size     `group:"Limits:" help:"Memory of long REST answers that wait for their clients, together; more are refused with 503." default:"128MiB"`
	MaxSocketBytes      size     `group:"Limits:" help:"Memory of all that waits for WebSockets, together; a socket that needs more is closed with 1013." default:"128MiB"`
	MemoryLimit         size     `group:"Limits:" help:"Memory of the process that the garbage collector works to keep; by default most of what the cgroup allows." placeholder:"SIZE"`
	MaxSockets          int      `group:"Limits:" help:"WebSockets; more are refused with 503." default:"16384"`
	MaxSocketsPerClient int      `group:"Limits:" help:"WebSockets of one client; more are refused with 429." default:"20"`
	WSOrigins           []string `group:"Limits:" help:"Origins a browser may open a WebSocket from; any by default." placeholder:"ORIGIN" name:"ws-origins"`

	clusterFlags `group:"Cluster:"`

	LogLevel  slog.Level `group:"Messages:" help:"The least that is said: debug, info, warn or error. A running node reads it again at SIGHUP." default:"info"`
	LogFormat string     `group:"Messages:" help:"How messages are written to standard error: text, or json (one object a line)." default:"text" enum:"text,json"`
}

// Validate checks what the flags' types cannot.
func (c *serveCommand) Validate() error {
	switch {
	case c.Listen == "":
		return errors.New("--listen must name an address, such as 127.0.0.1:8080")
	case c.DataDir == "":
		return errors.New("--data-dir must name a directory")
	case c.Shards < 0 || c.Shards > 1024:
		return errors.New("--shards must be between 0 and 1024")
	case c.FillUpTo < 0:
		return errors.New("--fill-up-to must not be negative")
	case c.SnapshotInterval < 0:
		return errors.New("--snapshot-interval must not be negative")
	case c.LogSegmentBytes < 64<<10:
		return errors.New("--log-segment-bytes must be at least 64KiB")
	case c.RetainSlots == 0:
		return errors.New("--retain-slots must be at least 1")
	case c.RateLimitMinute < 0 || c.RateLimitHour < 0:
		return errors.New("rate limits must not be negative")
	case c.MaxConns < 0:
		return errors.New("--max-conns must not be negative")
	case c.MaxConnsPerClient < 1 || c.MaxSockets < 1 || c.MaxSocketsPerClient < 1:
		return errors.New("--max-conns-per-client, --max-sockets and --max-sockets-per-client must be at least 1")
	case c.MaxAnswerBytes < 1<<20 || c.MaxSocketBytes < 1<<20:
		return errors.New("--max-answer-bytes and --max-socket-bytes must be at least 1MiB")
	case slices.ContainsFunc(c.TrustedProxies, func(p netip.Prefix) bool { return p.Bits() == 0 }):
		return errors.New("--trusted-proxies must not name every address: anybody could then say to be anybody")
	case c.Pprof && c.OpsListen == "":
		return errors.New("--pprof needs --ops-listen")
	case c.WSOrigins != nil && len(c.WSOrigins) == 0:
		return errors.New("--ws-origins must not be empty: leave it out to allow any")
	}
	if err := stream.CheckOrigins(c.WSOrigins); err != nil {
		return fmt.Errorf("--ws-origins: %w", err)
	}
	if err := c.tlsFlags.validate(c.OpsListen); err != nil {
		return err
	}
	return c.clusterFlags.validate(c.Source)
}

// node is one running ledgerd.
type node struct {
	logger      *slog.Logger
	source      source.Source
	fetcher     ledger.Fetcher // nil: nothing is fetched
	dir         *datadir.Dir
	dataDir     string           // where it is
	cluster     *cluster.Cluster // nil: the node is alone
	exchange    *exchange.Exchange
	facts       *datadir.Facts // what a node of a cluster knows of its ledger by its source; nil without one
	reload      *reload
	hangUps     chan os.Signal
	engine      *engine.Engine
	hub         *stream.Hub
	public      *httpd.Server
	ops         *ops.Server // nil without an operators' listener
	listener    net.Listener
	opsListener net.Listener
	tls, opsTLS *tls.Config  // nil: the listener does not encrypt
	keys        *apikey.Ring // nil: no keys are looked at
	fsyncs      promtext.Histogram
	writes      promtext.Histogram // to sockets
	deliveries  promtext.Histogram // from publication to a socket
	ingests     promtext.Histogram // from when the source showed something until it was visible
	stopping    atomic.Bool
}

// status says how the node is. One that is stopping is not healthy any more, so that
// balancers send nobody while the last answers go out.
func (n *node) status() ledger.NodeStatus {
	s := n.engine.Status()
	if n.cluster != nil {
		s.Peers += n.cluster.Peers()
		if s.Unhealthy != "" && !n.cluster.Connected() {
			s.Unhealthy += "; there is no connection to the shared log"
		}
	}
	if n.stopping.Load() {
		s.Unhealthy = "stopping"
	}
	return s
}

// publish tells everybody what became visible.
func (n *node) publish(p *ledger.Publication) {
	if !p.ReceivedAt.IsZero() {
		n.ingests.Observe(p.Head.Published.Sub(p.ReceivedAt))
	}
	n.hub.Publish(p)
}

// backup returns the node's data directory as a tar stream, and how long that is.
func (n *node) backup() (io.ReadCloser, int64, error) {
	b, err := n.engine.Backup()
	if err != nil {
		return nil, 0, err
	}
	n.logger.Info("sends a backup", "bytes", b.Bytes)
	return b, b.Bytes, nil
}

// progress says how far recovery is, then how far the reading of files of known size, and whether all of that is over.
func (n *node) progress() (p engine.Progress, over bool) {
	p = n.engine.Progress()
	if p.Phase != "" || n.engine.Stats().Recovery == 0 {
		return p, false
	}
	files, ok := n.source.(interface{ Progress() (read, size int64) })
	if !ok {
		return p, true
	}
	read, size := files.Progress()
	return engine.Progress{Phase: "reading the files", Done: uint64(read), Total: uint64(size)}, read >= size
}

// answers is the engine with the status of the whole node.
type answers struct {
	*engine.Engine
	node *node
}

// Status says how the node is.
func (a answers) Status() ledger.NodeStatus { return a.node.status() }

// Run starts the node and serves until ctx ends or something fails.
//
// The order is: source and flags, listeners, data directory, and only then connections,
// so that a mistake in what was asked for touches nothing.
func (c *serveCommand) Run(ctx context.Context, s *streams, args arguments, parsed *kong.Context) error {
	level := new(slog.LevelVar)
	level.Set(c.LogLevel)
	n := &node{logger: newLogger(s.err, c.LogFormat, level)}
	defer limitMemory(c.MemoryLimit, n.logger)()
	n.reload = &reload{args: args, running: parsed, level: level, log: n.logger}
	n.hangUps = make(chan os.Signal, 1) // further ones, while one is dealt with, ask for the same
	signal.Notify(n.hangUps, syscall.SIGHUP)
	defer signal.Ignore(syscall.SIGHUP) // it does not kill the node in its last moments either
	if err := c.open(ctx, n); err != nil {
		return err
	}
	defer n.dir.Close() // nothing is written to it any more
	c.warn(parsed.Flags(), n.logger)
	if err := c.assemble(ctx, n); err != nil {
		return err
	}
	if n.cluster != nil {
		defer n.cluster.Close()
	}

	var opsAddr net.Addr
	if n.opsListener != nil {
		opsAddr = n.opsListener.Addr()
	}
	var samples []ledger.Pubkey
	if sampler, ok := n.source.(interface{ Samples() []ledger.Pubkey }); ok {
		samples = sampler.Samples()
	}
	name := c.Source
	if n.source != nil {
		name = n.source.Info().Name // without secrets
	}
	if c.Log != "" {
		name = strings.TrimPrefix(name+" by way of ", "none by way of ") + cluster.Redact(c.Log)
	}
	banner(s.out, site{n.listener.Addr(), n.tls != nil}, site{opsAddr, n.opsTLS != nil}, name, samples)
	showing, stopShowing := context.WithCancel(ctx)
	bars := s.err
	if c.LogFormat == "json" || c.LogLevel > slog.LevelInfo {
		bars = io.Discard // what reads objects cannot read a bar
	}
	shown := showProgress(showing, bars, n.progress, n.logger)
	err := n.run(ctx)
	stopShowing()
	shown()
	return err
}

// open opens what may be refused.
func (c *serveCommand) open(ctx context.Context, n *node) (err error) {
	err = unlessStopped(ctx, func() (err error) {
		n.source, n.fetcher, err = c.openSource(n.logger)
		return err
	})
	if err != nil {
		return &usageError{err}
	}
	err = unlessStopped(ctx, func() (err error) {
		if n.tls, n.opsTLS, n.reload.certificate, err = c.tlsFlags.configs(n.logger); err != nil || c.APIKeys == "" {
			return err
		}
		held, err := readKeys(c.APIKeys)
		if err == nil {
			n.keys = apikey.NewRing(apikey.Tier{PerMinute: c.RateLimitMinute, PerHour: c.RateLimitHour}, time.Now())
			n.keys.Load(held)
			n.reload.keys = n.keys
		}
		return err
	})
	if err != nil {
		return &usageError{err}
	}
	if n.listener, err = net.Listen("tcp", c.Listen); err != nil {
		return &usageError{fmt.Errorf("cannot listen on --listen: %w", err)}
	}
	if c.OpsListen != "" {
		if n.opsListener, err = net.Listen("tcp", c.OpsListen); err != nil {
			n.listener.Close()
			return &usageError{fmt.Errorf("cannot listen on --ops-listen: %w", err)}
		}
		if at := n.opsListener.Addr().(*net.TCPAddr); !at.IP.IsLoopback() && n.opsTLS == nil {
			n.logger.Warn("whoever reaches the operators' listener may read it: bind it to a loopback address, or ask for certificates with --tls-client-ca",
				"address", at)
		}
	}
	n.dataDir = c.DataDir
	n.dir, err = c.openDir(n.source)
	if err != nil {
		n.listener.Close()
		if n.opsListener != nil {
			n.opsListener.Close()
		}
	}
	return err
}

// openSource opens the source, and sees that it can do what else is asked for. The fetcher is nil where nothing is to be fetched.
func (c *serveCommand) openSource(log *slog.Logger) (from source.Source, fetcher ledger.Fetcher, err error) {
	if from, err = source.OpenWith(c.Source, source.Options{Log: log, SkipVotes: c.SkipVotes}); err != nil {
		return nil, nil, err
	}
	if c.Fill == "on-demand" {
		if fetcher, _ = from.(ledger.Fetcher); fetcher == nil {
			return nil, nil, errors.New("--fill on-demand needs a source whose node can be asked for accounts over JSON-RPC")
		}
	}
	if c.filter() != nil && from != nil && strings.HasPrefix(from.Info().Identity, "sim:") {
		return nil, nil, errors.New("sim: goes on from all accounts of its ledger: it takes neither --index-owners nor --index-accounts")
	}
	return from, fetcher, nil
}

// openDir opens the data directory and ties it to what is asked for. Without a source it may be served
// with the filters it has, which then need not be given.
func (c *serveCommand) openDir(from source.Source) (*datadir.Dir, error) {
	dir, err := datadir.Open(c.DataDir)
	if err != nil {
		return nil, err
	}
	if filter := c.filter(); from != nil || filter != nil {
		err = dir.BindFilter(filter)
	}
	if err == nil && from != nil {
		err = dir.BindSource(from.Info())
	}
	if id, _ := dir.Cluster(); err == nil && id != "" && c.Log == "" && from != nil {
		err = fmt.Errorf("data directory %s belongs to a cluster: name its log with --log, or serve what it holds with --source none", c.DataDir)
	}
	if err == nil && (from != nil || c.SkipVotes) {
		err = dir.BindVotes(c.SkipVotes)
	}
	if err != nil {
		dir.Close()
		return nil, err
	}
	return dir, nil
}

// assemble introduces the parts to each other.
func (c *serveCommand) assemble(ctx context.Context, n *node) error {
	set := metrics.NewSet()
	config := engine.Config{
		Dir: n.dir, Shards: c.Shards, SkipVotes: c.SkipVotes, Logger: n.logger, Fetcher: n.fetcher, FetchUpTo: c.FillUpTo,
		Retention: sequencer.Retention{Slots: ledger.Slot(c.RetainSlots), Bytes: int(c.RetainBytes)},
		OnPublish: n.publish,
		Sync:      c.WALSync, OnSync: n.fsyncs.Observe,
		SnapshotInterval: c.SnapshotInterval, SegmentBytes: int64(c.LogSegmentBytes), MinFreeBytes: uint64(c.MinFreeBytes),
	}
	if n.source != nil {
		config.Source = n.source
	}
	if c.Log != "" {
		if err := c.connect(ctx, n, set, c.filter(), c.SkipVotes); err != nil {
			return err
		}
		config.Shared, config.MaxLag, config.Join = sharedLog{n.cluster.Log(), n}, c.MaxLag, n.join
		if c.Role != roleIngest {
			config.OnSnapshot = n.offer
		}
	}
	n.engine = engine.New(config)
	n.hub = stream.New(stream.Config{
		Ledger: n.engine, History: n.engine, Origins: c.WSOrigins, Metrics: set, Logger: n.logger,
		MaxConns: c.MaxSockets, MaxConnsPerClient: c.MaxSocketsPerClient, MemoryBytes: int(c.MaxSocketBytes),
		OnWrite: n.writes.Observe, OnDelivered: n.deliveries.Observe,
	})
	set.RegisterMetricsWriter(func(w io.Writer) {
		figures.Head(w, "ledgerd_ws_write_seconds", "histogram", "How long each write to a WebSocket took.")
		n.writes.Write(w, "ledgerd_ws_write_seconds", "")
		figures.Head(w, "ledgerd_ws_delivery_seconds", "histogram", "Time from a publication to the end of a write that brought it to a WebSocket.")
		n.deliveries.Write(w, "ledgerd_ws_delivery_seconds", "")
	})
	n.reload.revoked = n.hub.EndRevoked
	set.RegisterMetricsWriter(engineMetrics(n.engine, n.status))
	set.RegisterMetricsWriter(durabilityMetrics(n.engine, n.dir, c.SnapshotInterval, &n.fsyncs, &n.ingests))
	if s, ok := n.source.(interface{ Upstream() upstream.Snapshot }); ok {
		upstream.Show(set, s.Upstream)
	}
	if s, ok := n.source.(interface{ Calls() upstream.Snapshot }); ok {
		upstream.ShowCalls(set, s.Calls)
	}
	if n.keys != nil {
		set.RegisterMetricsWriter(n.keys.Write)
	}
	write := writeMetrics(set)
	n.public = httpd.New(httpd.Config{
		Ledger: answers{n.engine, n}, Version: build.Version, Upgrade: n.hub.Upgrade, MayUpgrade: n.hub.HasHead,
		PerMinute: c.RateLimitMinute, PerHour: c.RateLimitHour, Keys: n.keys,
		MaxAnswerBytes: int(c.MaxAnswerBytes), Metrics: set, WriteMetrics: write, Turn: giveway.Turn,
		Config: wire.Config{
			Identity: &ratelimit.Identity{TrustedProxies: c.TrustedProxies, Exempt: c.RateLimitExempt},
			MaxConns: c.MaxConns, MaxConnsPerClient: c.MaxConnsPerClient, ConnsPerMinute: connsPerRequest * c.RateLimitMinute, Log: n.logger, TLS: n.tls,
		},
	})
	if n.opsListener != nil {
		n.ops = ops.New(ops.Config{
			Status: n.status, WriteMetrics: func(w io.Writer) { write(w); writeFiles(w) }, Pprof: c.Pprof, Backup: n.backup, Log: n.logger, TLS: n.opsTLS,
		})
	}
	return nil
}

// run serves until ctx ends or a part fails, then stops the parts from the outside in:
// sockets, REST, and last the engine, so that no answer is cut off from its ledger.
func (n *node) run(ctx context.Context) error {
	engineCtx, stopEngine := context.WithCancel(context.Background())
	defer stopEngine()
	parts, failed := errgroup.WithContext(ctx)
	parts.Go(func() error { return n.engine.Run(engineCtx) })
	if os.Getenv("GOGC") == "" { // else a person decides
		parts.Go(func() error { keepHeadroom(failed); return nil })
	}
	parts.Go(func() error { n.reload.follow(failed, n.hangUps); return nil })
	n.watchFence(parts, failed.Done())
	if n.cluster != nil {
		n.watchLead(parts, failed.Done())
	}
	parts.Go(func() error { return n.public.Serve(n.listener) })
	if n.ops != nil {
		parts.Go(func() error { return n.ops.Serve(n.opsListener) })
	}
	parts.Go(func() error {
		<-failed.Done()
		n.stop(stopEngine)
		return nil
	})
	err := parts.Wait()
	if failure := n.engine.DiskFailure(); err == nil && failure != nil {
		err = fmt.Errorf("the disk failed: %w", failure)
	}
	n.logger.Info("stopped")
	return err
}

func (n *node) stop(stopEngine context.CancelFunc) {
	n.stopping.Store(true)
	n.logger.Info("stopping")
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	if err := n.hub.Shutdown(ctx); err != nil {
		n.logger.Warn("sockets were cut off", "error", err)
	}
	if err := n.public.Shutdown(ctx); err != nil {
		n.logger.Warn("requests were cut off", "error", err)
	}
	if n.ops != nil {
		if err := n.ops.Shutdown(ctx); err != nil {
			n.logger.Warn("operators' requests were cut off", "error", err)
		}
	}
	stopEngine()
}
