package main

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"ledgerd/httpd/ratelimit"
	"ledgerd/httpd/stream"
	"ledgerd/snapshot/wal"
)

// serveCommand is what a node is told on the command line, by the environment and in a file.
type serveCommand struct {
	Listen    string        `group:"Listeners:" help:"Address of the public listener: REST and WebSocket. unix:PATH is a Unix socket." default:"127.0.0.1:8080"`
	OpsListen string        `group:"Listeners:" help:"Address of the operators' listener: /metrics, /livez, /readyz, /backup, /state, in a cluster /snapshots; unix:PATH is a Unix socket. Keep it private; empty turns it off." default:"127.0.0.1:8081"`
	Drain     time.Duration `group:"Listeners:" help:"How long the node goes on after SIGTERM, while /readyz and /api/health answer 503, before it closes sockets: as long as the balancers in front take to notice. SIGINT, as Ctrl-C sends it, does not wait." default:"0s"`
	Pprof     bool          `group:"Listeners:" help:"Serve /debug/pprof on the operators' listener."`
	tlsFlags  `group:"Listeners:"`
	rpcFlags  `group:"JSON-RPC:"`

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
	RetainBytes      size          `group:"Storage:" help:"Blocks and transactions of so many bytes are held, or of an eighth of --memory-limit, if that is less." default:"2GiB"`
	HistoryBytes     sizeOrNone    `group:"Storage:" help:"Finalized blocks that memory does not hold any more stay on disk, in files of so many bytes; 0 is none." default:"10GiB"`
	Shards           int           `group:"Storage:" help:"How many goroutines share the state; 0 is one a core." default:"0"`

	limitFlags     `group:"Limits:"`
	APIKeys        string        `group:"Limits:" help:"Callers with limits of their own: a file of keys and tiers, see ledgerd key. A running node reads it again at SIGHUP." placeholder:"FILE" name:"api-keys"`
	TrustedProxies prefixes      `group:"Limits:" help:"Proxies whose X-Forwarded-For is believed; unix is all who connect to a Unix socket." placeholder:"CIDR|unix,…"`
	IdleTimeout    time.Duration `group:"Limits:" help:"How long a connection waits for its next request. Let it be longer than the proxies in front keep a connection to use it again." default:"75s"`
	MaxClientBytes size          `group:"Limits:" help:"Memory of all that waits for clients, long REST answers and WebSockets together; more is refused with 503, or closed with 1013. By default 128MiB, or a quarter of the memory limit if that is less." placeholder:"SIZE"`
	MemoryLimit    size          `group:"Limits:" help:"Memory of the process that the garbage collector works to keep; by default most of what the cgroup allows." placeholder:"SIZE"`

	clusterFlags `group:"Cluster:"`

	LogLevel  logLevel `group:"Messages:" help:"The least that is said: debug, info, warn or error. A running node reads it again at SIGHUP." default:"info"`
	AccessLog string   `group:"Messages:" help:"Access log of the public listener: a file that gets a line of JSON for each answer. A running node opens it anew at SIGHUP." placeholder:"FILE"`
	LogFormat string   `group:"Messages:" help:"How messages are written to standard error: text, or json (one object a line, also where the start is refused, and no banner on standard output)." default:"text" enum:"text,json"`
}

// limitFlags are what a running node takes over at SIGHUP.
type limitFlags struct {
	RateLimitMinute     int      `help:"Requests a client may make a minute; 0 is off." default:"100"`
	RateLimitHour       int      `help:"Requests a client may make an hour; 0 is off." default:"1000"`
	RateLimitExempt     prefixes `help:"Networks free of rate limits and connection caps; unix is all who connect to a Unix socket." placeholder:"CIDR|unix,…"`
	MaxConns            int      `help:"Connections on the public listener; 0 is what the file descriptors and a quarter of the memory limit allow." default:"0"`
	MaxConnsPerClient   int      `help:"Connections of one client." default:"100"`
	MaxSockets          int      `help:"WebSockets; more are refused with 503." default:"16384"`
	MaxSocketsPerClient int      `help:"WebSockets of one client; more are refused with 429." default:"20"`
	WSOrigins           []string `help:"Origins a browser may open a WebSocket from; any by default." placeholder:"ORIGIN" name:"ws-origins"`
}

// minHistoryBytes is eight of the largest files that are written at once: the oldest is dropped whole.
const minHistoryBytes = 256 << 20

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
	case c.Drain < 0:
		return errors.New("--drain must not be negative")
	case c.SnapshotInterval < 0:
		return errors.New("--snapshot-interval must not be negative")
	case c.LogSegmentBytes < 64<<10:
		return errors.New("--log-segment-bytes must be at least 64KiB")
	case c.HistoryBytes != 0 && c.HistoryBytes < minHistoryBytes:
		return errors.New("--history-bytes must be 0 or at least 256MiB")
	case c.RetainSlots == 0:
		return errors.New("--retain-slots must be at least 1")
	case min(c.RateLimitMinute, c.RateLimitHour) < 0 || max(c.RateLimitMinute, c.RateLimitHour) > ratelimit.MaxLimit:
		return fmt.Errorf("--rate-limit-minute and --rate-limit-hour must be from 0 to %d", ratelimit.MaxLimit)
	case c.MaxConns < 0:
		return errors.New("--max-conns must not be negative")
	case c.MaxConnsPerClient < 1 || c.MaxSockets < 1 || c.MaxSocketsPerClient < 1:
		return errors.New("--max-conns-per-client, --max-sockets and --max-sockets-per-client must be at least 1")
	case c.IdleTimeout < time.Second:
		return errors.New("--idle-timeout must be at least 1s")
	case c.MemoryLimit != 0 && c.MemoryLimit < leastMemoryLimit:
		return errors.New("--memory-limit must be at least 32MiB")
	case c.MaxClientBytes != 0 && c.MaxClientBytes < 1<<20:
		return errors.New("--max-client-bytes must be at least 1MiB")
	case slices.ContainsFunc(c.TrustedProxies, func(p netip.Prefix) bool { return p.Bits() == 0 }):
		return errors.New("--trusted-proxies must not name every address: anybody could then say to be anybody")
	case c.Pprof && c.OpsListen == "":
		return errors.New("--pprof needs --ops-listen")
	case c.WSOrigins != nil && len(c.WSOrigins) == 0:
		return errors.New("--ws-origins must not be empty: leave it out to allow any")
	}
	if err := checkAddress(c.Listen); err != nil {
		return fmt.Errorf("--listen: %w", err)
	}
	if c.OpsListen != "" {
		if err := checkAddress(c.OpsListen); err != nil {
			return fmt.Errorf("--ops-listen: %w", err)
		}
		if sameAddress(c.Listen, c.OpsListen) {
			return fmt.Errorf("--ops-listen: %q is the address of --listen too", c.OpsListen)
		}
	}
	if err := stream.CheckOrigins(c.WSOrigins); err != nil {
		return fmt.Errorf("--ws-origins: %w", err)
	}
	if err := c.tlsFlags.validate(c.OpsListen); err != nil {
		return err
	}
	if err := c.rpcFlags.validate(c.Listen, c.OpsListen); err != nil {
		return err
	}
	return c.clusterFlags.validate(c.Source)
}
