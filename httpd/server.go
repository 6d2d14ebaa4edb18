package httpd

import (
	"cmp"
	"fmt"
	"io"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/VictoriaMetrics/metrics"
	"github.com/fasthttp/router"
	"github.com/valyala/fasthttp"

	"ledgerd/engine/ledger"
	"ledgerd/httpd/accesslog"
	"ledgerd/httpd/apikey"
	"ledgerd/httpd/budget"
	"ledgerd/httpd/console"
	"ledgerd/httpd/ratelimit"
	"ledgerd/httpd/wire"
)

// Ledger is what the server queries. Every answer is computed from one version, which the
// view names; the view's head is nil before anything was published. Answers are shared and
// not changed. Errors are *ledger.NotFoundError, match ledger.ErrUnavailable (as ErrMinSlot
// does), or are faults of the node. A query does not wait longer than its own Wait and the
// deadline of the shards.
type Ledger interface {
	Head() *ledger.Head // the newest published, nil before the first
	Status() ledger.NodeStatus
	Await(q ledger.Query) error // waits for the MinSlot of the query, for at most its Wait
	LatestBlock(q ledger.Query) (ledger.BlockAnswer, ledger.View, error)
	Block(q ledger.Query, slot ledger.Slot) (ledger.BlockAnswer, ledger.View, error)
	Transaction(q ledger.Query, sig ledger.Signature) (ledger.TransactionAnswer, ledger.View, error)
	Transactions(q ledger.Query, in ledger.TransactionRange) (ledger.TransactionPage, ledger.View, error)
	Account(q ledger.Query, key ledger.Pubkey) (ledger.Account, ledger.View, error) // without token facts
	// Accounts answers in the order of keys; those that are missing do not exist.
	Accounts(q ledger.Query, keys []ledger.Pubkey) ([]ledger.Account, ledger.View, error)
	// Mints answers in the order of keys; nil where nothing is known of a mint.
	Mints(q ledger.Query, keys []ledger.Pubkey) ([]*ledger.Mint, ledger.View, error)
	// Tokens answers in pubkey order after a key, and with the key after which the next page begins, unknown at the end. The accounts
	// belong to the caller; they are in room if that is large enough. After an error room must not be used again.
	Tokens(q ledger.Query, owner ledger.Pubkey, after ledger.Opt[ledger.Pubkey], limit int, room []ledger.Account) ([]ledger.Account, ledger.Opt[ledger.Pubkey], ledger.View, error)
	// Program is Tokens for the accounts of a program.
	Program(q ledger.Query, program ledger.Pubkey, after ledger.Opt[ledger.Pubkey], limit int, room []ledger.Account) ([]ledger.Account, ledger.Opt[ledger.Pubkey], ledger.View, error)
}

// Config says what a server does. Ledger is required; the zero value of everything else
// works.
type Config struct {
	wire.Config // of its connections; Handler is the server's own. Exempt clients are not limited either.

	Ledger     Ledger
	Version    string // of the service, N.N.N
	IndexMints bool   // the ledger lists the token accounts of a mint
	RPCPort    int    // where JSON-RPC is spoken, which the console shows; 0: nowhere

	PerMinute, PerHour int            // requests a client may make, 0: unlimited
	Keys               *apikey.Ring   // callers with a limit of their own; nil: API keys in requests are ignored
	Memory             *budget.Budget // what long answers take from while they wait for their clients; nil: a budget of its own

	// Upgrade is called with every valid WebSocket handshake on /api/ws/accounts, after the
	// client was identified and counted. It either hijacks ctx or returns an error. The response gets the
	// headers that all responses carry after Upgrade has returned. The connection counts for client.
	//
	// A hijacked connection is closed when the hijacker returns, unless that has called
	// Detach() net.Conn of ctx.Conn(): the new owner closes the connection that Detach returns, which
	// outlives request and buffers. IfLost(func()) of ctx.Conn() sets what is called if the connection ends
	// before that, since no hijacker is called if the answer cannot be written. What the client sent right after
	// its handshake must be read from the connection that the hijacker is given, before it
	// returns. If Upgrade is nil, handshakes are answered with 503.
	Upgrade func(ctx *fasthttp.RequestCtx, client ratelimit.Client) error
	// WouldRefuse is called with requests for the same path that are no handshakes. It returns the error with which Upgrade would refuse
	// their handshake, nil if it would accept it. If WouldRefuse is nil, none is refused.
	WouldRefuse func(ctx *fasthttp.RequestCtx, client ratelimit.Client) error
	// MayUpgrade reports whether Upgrade may be called, once the ledger has a head: handshakes are
	// answered with 503 before that. nil: it may.
	MayUpgrade func() bool

	// Turn lets other goroutines and threads go first. It is called now and then while a long list
	// is encoded; nil: nothing does.
	Turn func()

	Metrics *metrics.Set // where the server registers its numbers; nil: a set of its own
	// WriteMetrics writes what /api/metrics answers; nil: the set.
	WriteMetrics func(w io.Writer)
	AccessLog    *accesslog.Log // gets a line for each answer; nil: there is none

	Now func() time.Time // the clock, with a monotonic reading; nil: time.Now
}

func (c Config) withDefaults() Config {
	c.Config = c.Config.WithDefaults()
	c.Memory = cmp.Or(c.Memory, budget.New(0))
	c.Metrics = cmp.Or(c.Metrics, metrics.NewSet())
	if c.WriteMetrics == nil {
		c.WriteMetrics = c.Metrics.WritePrometheus
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return c
}

// Server is the public side of the node. Serve, Shutdown and Connections are those of its
// wire.Server.
type Server struct {
	*wire.Server
	config      Config
	limiter     *ratelimit.Limiter
	fileLimiter *ratelimit.Limiter // of the files of pages
	routes      []*route
	site        *console.Site
	pages       pages
	missing     *page                   // is shown to browsers where there is no page
	refusal     atomic.Pointer[refusal] // the last one
	router      *router.Router
	answers     answers
	meters      meters
	requests    sync.Pool // of *request
}

// New returns a server that serves nothing yet.
func New(config Config) *Server {
	c := config.withDefaults()
	site := console.New(openAPIDocument, c.RPCPort)
	rows, all := newRoutes(), newPages(site)
	s := &Server{
		config:      c,
		limiter:     ratelimit.New(c.PerMinute, c.PerHour, c.Now()),
		fileLimiter: ratelimit.New(c.PerMinute*all.files(), c.PerHour*all.files(), c.Now()),
		routes:      rows,
		site:        site,
		pages:       all,
		missing:     newPage(site.Missing()),
		router:      newRouter(rows, all),
		answers:     answers{Part: &c.Memory.Answers},
		requests:    sync.Pool{New: func() any { return new(request) }},
	}
	c.Handler = s.handle
	s.Server = wire.New(c.Config)
	c.Metrics.RegisterMetricsWriter(s.writeOwnMetrics)
	return s
}

// SetLimits changes how many requests a client may make, 0: any number.
func (s *Server) SetLimits(perMinute, perHour int) {
	s.limiter.SetLimits(perMinute, perHour)
	s.fileLimiter.SetLimits(perMinute*s.pages.files(), perHour*s.pages.files())
}

// panicked reports a panic in a handler; the process goes on.
func (s *Server) panicked(label string, value any) {
	s.meters.panics.Add(1)
	s.config.Log.Error("panic in a request handler", "route", label, "panic", fmt.Sprint(value), "stack", string(debug.Stack()))
}
