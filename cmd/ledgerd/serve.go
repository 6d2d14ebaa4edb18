package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/url"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/VictoriaMetrics/metrics"
	"github.com/alecthomas/kong"

	"ledgerd/cmd/internal/build"
	"ledgerd/engine"
	"ledgerd/engine/cluster"
	"ledgerd/engine/datadir"
	"ledgerd/engine/figures"
	"ledgerd/engine/ledger"
	"ledgerd/engine/sequencer"
	"ledgerd/engine/source"
	"ledgerd/engine/source/upstream"
	"ledgerd/httpd"
	"ledgerd/httpd/accesslog"
	"ledgerd/httpd/apikey"
	"ledgerd/httpd/budget"
	"ledgerd/httpd/ops"
	"ledgerd/httpd/ratelimit"
	"ledgerd/httpd/stream"
	"ledgerd/httpd/wire"
	"ledgerd/shard/giveway"
)

// profileNoHeap has the runtime keep no profile of the heap: nobody could read it, and it grows for hours with each new path of calls.
var profileNoHeap = sync.OnceFunc(func() { runtime.MemProfileRate = 0 })

// Run serves until ctx ends or something fails. A node of a cluster that lost its place in the log begins anew, see anew.
func (c *serveCommand) Run(ctx context.Context, s *streams, args arguments, parsed *kong.Context) error {
	level := new(slog.LevelVar)
	level.Set(c.LogLevel.Level)
	logger := newLogger(s.err, c.LogFormat, level)
	if !c.Pprof {
		profileNoHeap()
	}
	limit, cores := limitMemory(c.MemoryLimit, logger), addProcessor()
	r := &reload{args: args, values: make(map[string]any), level: level, keys: c.APIKeys}
	for _, f := range parsed.Flags() {
		r.values[f.Name] = f.Target.Interface()
	}
	hangUps := make(chan os.Signal, 1) // further ones, while one is dealt with, ask for the same
	signal.Notify(hangUps, syscall.SIGHUP)
	defer signal.Ignore(syscall.SIGHUP) // it does not kill the node in its last moments either
	begins := newAnew()
	for {
		n := &node{logger: logger, memoryLimit: limit, cores: cores, drain: c.Drain, reload: r, hangUps: hangUps, anew: begins}
		if r.node, r.apply = n, nil; begins.begun {
			debug.FreeOSMemory() // what the node held before is not to count while it reads in
		}
		err := c.serve(ctx, n, s, parsed)
		switch err = begins.after(err, !strings.HasPrefix(c.Source, "file:"), n.heldWholeLog()); {
		case !errors.Is(err, errAgain):
			return err
		case ctx.Err() != nil: // what is to end need not begin
			return nil
		}
		logger.Warn(errAgain.Error()+", from its disk or the newest snapshot that is offered", "error", err)
	}
}

// serve starts a node and serves until ctx ends or something fails.
//
// The order is: source and flags, listeners, data directory, and only then connections,
// so that a mistake in what was asked for touches nothing.
func (c *serveCommand) serve(ctx context.Context, n *node, s *streams, parsed *kong.Context) error {
	defer n.closeListeners()
	if err := c.open(ctx, n); err != nil {
		return err
	}
	keepPort(&c.Listen, n.listener)
	if n.opsListener != nil {
		keepPort(&c.OpsListen, n.opsListener)
	}
	defer n.dir.Close() // nothing is written to it any more
	c.warn(parsed.Flags(), n.logger)
	if err := c.assemble(ctx, n); err != nil {
		return err
	}
	if n.cluster != nil {
		defer n.cluster.Close()
	}

	name := c.Source
	if n.source != nil {
		name = n.source.Info().Name // without secrets
	}
	if c.Log != "" {
		name = strings.TrimPrefix(name+" by way of ", "none by way of ") + cluster.Redact(c.Log)
	}
	if all, public := n.doors(); c.LogFormat == "json" {
		logDoors(n.logger, name, all)
	} else {
		var samples []ledger.Pubkey
		if sampler, ok := n.source.(interface{ Samples() []ledger.Pubkey }); ok {
			samples = sampler.Samples()
		}
		banner(s.out, public, name, all, samples)
	}
	showing, stopShowing := context.WithCancel(ctx)
	shown := showProgress(showing, n.progress, func(p engine.Progress) { n.logger.Info(p.Phase, "percent", p.Percent()) })
	err := n.run(ctx)
	stopShowing()
	shown()
	return err
}

// open opens what may be refused.
func (c *serveCommand) open(ctx context.Context, n *node) (err error) {
	for _, o := range c.openings(ctx, n) {
		if err := o.open(); err != nil {
			return &usageError{err}
		}
	}
	if n.opsListener != nil {
		if at, ok := n.opsListener.Addr().(*net.TCPAddr); ok && !at.IP.IsLoopback() && n.opsTLS == nil {
			n.logger.Warn("whoever reaches the operators' listener may read it: bind it to a loopback address, or ask for certificates with --tls-client-ca",
				"address", at)
		}
	}
	n.dataDir = c.DataDir
	n.dir, err = c.openDir(datadir.Open, n.source)
	return err
}

// opening is what a flag names and a start opens before the data directory.
type opening struct {
	flag  string
	open  func() error
	check func() error // returns why open would fail, and makes nothing; nil: open makes nothing
}

// openings returns them in their order.
func (c *serveCommand) openings(ctx context.Context, n *node) []opening {
	all := []opening{
		{"--source", func() error { return c.openSource(n) }, nil},
		{"--tls-cert", func() (err error) {
			n.encryption, err = c.tlsFlags.open(n.logger)
			return err
		}, nil},
		{"--api-keys", func() error { return c.openKeys(n) }, nil},
	}
	if c.AccessLog != "" {
		all = append(all, opening{"--access-log", func() error { return c.openAccessLog(n) }, func() error { return mayBecome(c.AccessLog, false) }})
	}
	// Connections are found dead by their deadlines and heartbeats, sooner than by TCP, whose options would cost each one that is refused.
	clients := net.ListenConfig{KeepAlive: -1}
	all = append(all, listening(ctx, "--listen", clients, c.Listen, func(l net.Listener) { n.listener = l }))
	for _, address := range c.rpcFlags.addresses() {
		all = append(all, listening(ctx, "--rpc-listen, and the port above", clients, address, func(l net.Listener) { n.rpcPorts = append(n.rpcPorts, l) }))
	}
	if c.OpsListen != "" {
		all = append(all, listening(ctx, "--ops-listen", net.ListenConfig{}, c.OpsListen, func(l net.Listener) { n.opsListener = l }))
	}
	return all
}

func (c *serveCommand) openAccessLog(n *node) (err error) {
	if n.accessLog, err = accesslog.Open(c.AccessLog, n.logger); err != nil {
		return fmt.Errorf("cannot open --access-log: %w", err)
	}
	return nil
}

// openSource opens the source, and sees that it can do what else is asked for.
func (c *serveCommand) openSource(n *node) (err error) {
	if n.source, err = source.Open(c.Source, source.Options{Log: n.logger, SkipVotes: c.SkipVotes, Filter: c.filter(), Data: c.Data.DataPrograms}); err != nil {
		return err
	}
	if n.fetcher, _ = n.source.(ledger.Fetcher); n.fetcher == nil && c.Fill == "on-demand" {
		return errors.New("--fill on-demand needs a source whose node can be asked for accounts over JSON-RPC")
	}
	if c.filter() != nil && n.source != nil && strings.HasPrefix(n.source.Info().Identity, "sim:") {
		return errors.New("sim: goes on from all accounts of its ledger: it takes neither --index-owners nor --index-accounts")
	}
	return nil
}

// openKeys reads the API keys, if there are any.
func (c *serveCommand) openKeys(n *node) error {
	if c.APIKeys == "" {
		return nil
	}
	held, err := readKeys(c.APIKeys)
	if err == nil {
		n.keys = apikey.NewRing(c.usualTier(), time.Now())
		n.keys.Load(held)
	}
	return err
}

// usualTier returns what callers without a key may do.
func (c *serveCommand) usualTier() apikey.Tier {
	return apikey.Tier{PerMinute: apikey.Count(c.RateLimitMinute), PerHour: apikey.Count(c.RateLimitHour)}
}

// openDir opens the data directory and ties it to what is asked for. Without a source it may be served
// with the filters it has, which then need not be given. Where it is only viewed, it stays as it is.
func (c *serveCommand) openDir(open func(path string) (*datadir.Dir, error), from ledger.Source) (*datadir.Dir, error) {
	dir, err := open(c.DataDir)
	if err != nil {
		return nil, err
	}
	var shows *ledger.SourceInfo
	if from != nil {
		info := from.Info()
		shows = &info
	}
	err = dir.Bind(shows, c.filter(), c.Data.DataPrograms, c.SkipVotes)
	if id, _ := dir.Cluster(); err == nil && id != "" && c.Log == "" && from != nil {
		err = fmt.Errorf("data directory %s belongs to a cluster: name its log with --log, or serve what it holds with --source none", c.DataDir)
	}
	if err != nil {
		dir.Close()
		return nil, err
	}
	return dir, nil
}

// assemble introduces the parts to each other.
func (c *serveCommand) assemble(ctx context.Context, n *node) error {
	set, memory := metrics.NewSet(), clientMemory(c.MaxClientBytes, n.memoryLimit)
	if err := c.assembleEngine(ctx, n, set, memory); err != nil {
		return err
	}
	var want func(...ledger.Pubkey)
	if c.Fill == "on-demand" {
		want = n.engine.Want
	}
	n.hub = stream.New(stream.Config{
		Ledger: n.engine, Want: want, History: n.engine, Metrics: set, Logger: n.logger, Memory: memory,
		RingBytes: followBytes(n.memoryLimit), RecentBytes: followBytes(n.memoryLimit),
		OnDelivered: n.deliveries.Observe,
	})
	set.RegisterMetricsWriter(func(w io.Writer) {
		figures.Head(w, "ledgerd_ws_delivery_seconds", "histogram", "Time from a publication to the end of a write that brought it to a WebSocket.")
		n.deliveries.Write(w, "ledgerd_ws_delivery_seconds", "")
	})
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
	if n.accessLog != nil {
		set.RegisterMetricsWriter(n.accessLog.WriteMetrics)
	}
	write := writeMetrics(set)
	identity := ratelimit.NewIdentity(c.TrustedProxies, nil)
	n.public = httpd.New(httpd.Config{
		Ledger: answers{n.engine, n}, Version: build.Version, IndexMints: c.IndexMints, RPCPort: n.rpcPort(), Upgrade: n.hub.Upgrade, WouldRefuse: n.hub.WouldRefuse, MayUpgrade: n.hub.HasHead,
		Keys: n.keys, Memory: memory, Metrics: set, WriteMetrics: write, AccessLog: n.accessLog, Turn: giveway.Turn,
		Config: wire.Config{Identity: identity, IdleTimeout: c.IdleTimeout, Log: n.logger, TLS: n.tls},
	})
	if err := c.rpcFlags.assemble(n, set); err != nil {
		return err
	}
	n.reload.apply = func(fresh *limitFlags) {
		c.limitFlags = *fresh
		n.public.SetLimits(fresh.RateLimitMinute, fresh.RateLimitHour)
		pace := 10 * max(fresh.RateLimitMinute, (fresh.RateLimitHour+59)/60) // ten connections for each request
		n.public.SetCaps(mostConns(fresh.MaxConns, n.memoryLimit, n.tls != nil), fresh.MaxConnsPerClient, pace)
		n.hub.SetCaps(fresh.MaxSockets, fresh.MaxSocketsPerClient)
		identity.SetExempt(fresh.RateLimitExempt)
		n.hub.SetOrigins(fresh.WSOrigins)
	}
	n.reload.apply(&c.limitFlags)
	if n.opsListener != nil {
		config := ops.Config{
			Status: n.status, WriteMetrics: func(w io.Writer) { write(w); writeFiles(w) }, Pprof: c.Pprof, Backup: n.backup, State: n.state, Log: n.logger, TLS: n.opsTLS,
		}
		if n.cluster != nil {
			config.Trouble = n.cluster.Trouble
			config.Snapshot, config.Name = n.snapshotFile, (&url.URL{Host: c.OpsAdvertise}).Hostname()
		}
		n.ops = ops.New(config)
	}
	return nil
}

// assembleEngine introduces the source and the shared log, if there are any, to the engine.
func (c *serveCommand) assembleEngine(ctx context.Context, n *node, set *metrics.Set, memory *budget.Budget) error {
	config := engine.Config{
		Source: n.source, Dir: n.dir, Shards: cmp.Or(c.Shards, n.cores), Logger: n.logger,
		Fetcher: n.fetcher, MintsOnly: c.Fill != "on-demand", FetchUpTo: c.FillUpTo, MayFetch: memory.MayFetch,
		Retention:   sequencer.Retention{Slots: ledger.Slot(c.RetainSlots), Bytes: int(c.RetainBytes)},
		IndexMints:  c.IndexMints,
		MemoryLimit: n.memoryLimit, OnPublish: n.publish,
		Sync: c.WALSync, OnSync: n.fsyncs.Observe,
		SnapshotInterval: c.SnapshotInterval, SegmentBytes: int64(c.LogSegmentBytes), MinFreeBytes: uint64(c.MinFreeBytes), HistoryBytes: int64(c.HistoryBytes),
	}
	if c.Log != "" {
		if err := c.connect(ctx, n, set, &c.filterFlags, c.SkipVotes); err != nil {
			return err
		}
		config.Shared, config.MaxLag, config.Join = sharedLog{n.cluster.Log(), n}, c.MaxLag, n.join
		if n.exchange.Offers() {
			config.OnSnapshot = n.offer
		}
	}
	n.engine = engine.New(config)
	return nil
}
