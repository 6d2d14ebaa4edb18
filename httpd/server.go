package httpd

import (
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"runtime/debug"
	"sync"
	"time"

	"github.com/VictoriaMetrics/metrics"
	"github.com/valyala/fasthttp"

	"ledgerd/engine/ledger"
)

// Ledger is what the server asks. Every answer is computed from one version, which the
// view names; the view's head is nil before anything was published. Answers are shared and
// not changed. Errors are *ledger.NotFoundError, ledger.ErrUnavailable (ErrMinSlot among
// them), or faults of the node. A question does not wait longer than its own Wait and the
// deadline of the shards.
type Ledger interface {
	Head() *ledger.Head // the newest published, nil before the first
	Status() ledger.NodeStatus
	LatestBlock(q ledger.Query) (ledger.BlockAnswer, ledger.View, error)
	Block(q ledger.Query, slot ledger.Slot) (ledger.BlockAnswer, ledger.View, error)
	Transaction(q ledger.Query, sig ledger.Signature) (ledger.TransactionAnswer, ledger.View, error)
	Recent(q ledger.Query, r ledger.RecentRange) (txs []*ledger.Transaction, more bool, v ledger.View, err error)
	Account(q ledger.Query, key ledger.Pubkey) (ledger.Account, ledger.View, error) // without token facts
	// Accounts answers in the order of keys; those that are missing do not exist.
	Accounts(q ledger.Query, keys []ledger.Pubkey) ([]ledger.Account, ledger.View, error)
	Tokens(q ledger.Query, owner ledger.Pubkey, after ledger.Opt[ledger.Pubkey], limit int) ([]ledger.TokenAnswer, bool, ledger.View, error)
	Program(q ledger.Query, program ledger.Pubkey, after ledger.Opt[ledger.Pubkey], limit int) ([]ledger.Account, bool, ledger.View, error)
}

// Config says what a server does. Ledger is required; the zero value of everything else
// works.
type Config struct {
	Ledger  Ledger
	Version string // of the service, N.N.N

	PerMinute, PerHour int // requests a client may make, 0: unlimited
	// Exempt clients are not limited and not capped.
	Exempt []netip.Prefix
	// TrustedProxies are the peers whose X-Forwarded-For is believed.
	TrustedProxies []netip.Prefix

	MaxConns          int // 0: what the process' file descriptors allow
	MaxConnsPerClient int // 0: 100

	ReadTimeout  time.Duration // for one request, from its first byte; 0: 5 s
	WriteTimeout time.Duration // for what is ready to be written at once; 0: 10 s
	IdleTimeout  time.Duration // between requests; 0: 30 s

	// Upgrade is given every valid WebSocket handshake on /api/ws/accounts, after the
	// client was identified and counted. It either hijacks ctx or writes a refusal; the
	// headers all responses carry are added after it returns, also Retry-After to a 429
	// or 503 without one. client is an IPv4 address or the first address of an IPv6 /64.
	//
	// A hijacked connection is closed when the hijacker returns, unless that has called
	// Detach() net.Conn of ctx.Conn(): what that returns is the new owner's to close, and
	// outlives request and buffers. IfLost(func()) of ctx.Conn() tells when it ends before that:
	// no hijacker is called where the answer cannot be written. What the client sent right behind its handshake is to be
	// read from the connection that the hijacker is given, before it returns. nil: 503.
	Upgrade func(ctx *fasthttp.RequestCtx, client netip.Addr, exempt bool)

	Metrics *metrics.Set // where the server registers its numbers; nil: a set of its own
	// WriteMetrics writes what /api/metrics answers; nil: the set.
	WriteMetrics func(w io.Writer)

	Log *slog.Logger     // nil: silent
	Now func() time.Time // the clock, with a monotonic reading; nil: time.Now
}

// The defaults of Config.
const (
	defaultMaxConnsPerClient = 100
	defaultReadTimeout       = 5 * time.Second
	defaultWriteTimeout      = 10 * time.Second
	defaultIdleTimeout       = 30 * time.Second
)

// Server is the public side of the node.
type Server struct {
	ledger       Ledger
	version      string
	identity     *identity
	limiter      *limiter
	sharing      *sharing
	compressor   *compressor
	meters       *meters
	date         dateText
	upgrade      func(ctx *fasthttp.RequestCtx, client netip.Addr, exempt bool)
	writeMetrics func(w io.Writer)
	log          *slog.Logger
	now          func() time.Time
	ownClock     bool // now is not the system's

	*acceptor
	requests sync.Pool // of *request
	long     sync.Pool // of *longBody
}

// New returns a server that serves nothing yet.
func New(config Config) *Server {
	c := config.withDefaults()
	s := &Server{
		ledger:       c.Ledger,
		version:      c.Version,
		identity:     &identity{trustedProxies: c.TrustedProxies, exempt: c.Exempt},
		limiter:      newLimiter(c.PerMinute, c.PerHour, defaultBuckets, c.Now()),
		compressor:   newCompressor(),
		upgrade:      c.Upgrade,
		writeMetrics: c.WriteMetrics,
		log:          c.Log,
		now:          c.Now,
		ownClock:     config.Now != nil,
		requests:     sync.Pool{New: func() any { return new(request) }},
	}
	s.sharing = newSharing(s.limiter)
	s.meters = &meters{open: func() int { return s.connections() }}
	c.Metrics.RegisterMetricsWriter(s.meters.write)
	s.acceptor = newAcceptor(listenerConfig{
		identity:   s.identity,
		timeouts:   timeouts{read: c.ReadTimeout, write: c.WriteTimeout, idle: c.IdleTimeout},
		maxConns:   c.MaxConns,
		maxPerPeer: c.MaxConnsPerClient,
		log:        c.Log,
		meters:     s.meters,
		direct:     s.direct,
	}, s.handle)
	return s
}

func (c Config) withDefaults() Config {
	if c.MaxConns == 0 {
		c.MaxConns = connsWithinFileLimit()
	}
	if c.MaxConnsPerClient == 0 {
		c.MaxConnsPerClient = defaultMaxConnsPerClient
	}
	if c.ReadTimeout == 0 {
		c.ReadTimeout = defaultReadTimeout
	}
	if c.WriteTimeout == 0 {
		c.WriteTimeout = defaultWriteTimeout
	}
	if c.IdleTimeout == 0 {
		c.IdleTimeout = defaultIdleTimeout
	}
	if c.Metrics == nil {
		c.Metrics = metrics.NewSet()
	}
	if c.WriteMetrics == nil {
		c.WriteMetrics = c.Metrics.WritePrometheus
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return c
}

// handle is one exchange.
func (s *Server) handle(ctx *fasthttp.RequestCtx) {
	r := s.requests.Get().(*request)
	r.begin(s, ctx)
	r.answer()
	r.finish()
	s.meters.observe(r.route, r.status, s.since(r.now))
	if !r.allowance.allowed {
		s.meters.limited[r.allowance.window].Add(1)
	}
	r.end()
	s.requests.Put(r)
}

// arrival returns when an exchange began. fasthttp has just read the clock for every request
// that it did not give up itself, and reading it again is not free.
func (s *Server) arrival(ctx *fasthttp.RequestCtx, c *conn) time.Time {
	if at := ctx.Time(); !s.ownClock && !c.verdict.refused() && !at.IsZero() {
		return at
	}
	return s.now()
}

// since returns how long ago an instant was.
func (s *Server) since(t time.Time) time.Duration {
	if s.ownClock {
		return s.now().Sub(t)
	}
	return time.Since(t) // which reads one clock only, the time of day not
}

// panicked tells of a panic in a handler; the process goes on.
func (s *Server) panicked(where route, value any) {
	s.meters.panics.Add(1)
	s.log.Error("panic in a request handler", "route", routeNames[where], "panic", fmt.Sprint(value), "stack", string(debug.Stack()))
}
