package rpc

import (
	"bytes"
	"cmp"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/VictoriaMetrics/metrics"
	"github.com/valyala/fasthttp"
	"golang.org/x/sync/semaphore"

	"ledgerd/engine/ledger"
	"ledgerd/httpd"
	"ledgerd/httpd/encode"
	"ledgerd/httpd/promtext"
	"ledgerd/httpd/stream"
	"ledgerd/httpd/wire"
)

// Ledger is what a door asks besides what REST asks.
type Ledger interface {
	httpd.Ledger
	// Slots returns the slots from one to another, both included, that have blocks: the oldest of them, at most limit.
	Slots(q ledger.Query, from, to ledger.Slot, limit int) (ledger.SlotPage, ledger.View, error)
}

// Config says what a door does. Ledger is required; the zero value of everything else works.
type Config struct {
	Ledger        Ledger
	Version       string      // of the service, which is the apiVersion of answers
	GenesisHash   string      // of the cluster; empty: an upstream is asked once an hour
	Hub           *stream.Hub // of WebSockets; nil: there are none
	IndexMints    bool        // the ledger lists the token accounts of a mint
	SlotsPerEpoch uint64      // 0: those of the public clusters
	Forward       []string    // URLs of nodes that are asked what the ledger cannot answer, in this order
	Turn          func()      // lets other goroutines and threads go first, now and then while a long list is encoded; nil: nothing does

	Metrics *metrics.Set // where the door registers its numbers; nil: a set of its own
	Log     *slog.Logger // nil: silent
}

// usualSlotsPerEpoch are those of the public clusters.
const usualSlotsPerEpoch = 432_000

// Door answers JSON-RPC. It is an httpd.Door.
type Door struct {
	config    Config
	version   []byte // Config.Version as JSON
	methods   []*method
	byName    map[string]*method // without the last one
	upstreams []*upstream
	inFlight  *semaphore.Weighted         // bounds the calls that upstreams are asked at a time
	sessions  sync.Pool                   // of *session
	asked     atomic.Uint64               // numbers the requests to upstreams
	genesis   atomic.Pointer[genesisHash] // Config.GenesisHash, or what an upstream told; nil: neither
	lost      promtext.Counter
}

// New returns a door. An error says which URL of Config.Forward is none, without repeating it.
func New(config Config) (*Door, error) {
	config.SlotsPerEpoch = cmp.Or(config.SlotsPerEpoch, usualSlotsPerEpoch)
	config.Metrics = cmp.Or(config.Metrics, metrics.NewSet())
	config.Log = cmp.Or(config.Log, slog.New(slog.DiscardHandler))
	d := &Door{config: config, version: encode.AppendString(nil, config.Version), methods: newMethods(), byName: make(map[string]*method), inFlight: semaphore.NewWeighted(maxInFlight)}
	for _, m := range d.methods[:len(d.methods)-1] {
		d.byName[m.name] = m
	}
	if hash, err := ledger.ParseHash(config.GenesisHash); err == nil {
		d.genesis.Store(&genesisHash{hash: hash})
	}
	d.sessions.New = func() any { return new(session) }
	var err error
	if d.upstreams, err = newUpstreams(config.Forward, config.Log); err != nil {
		return nil, err
	}
	config.Metrics.RegisterMetricsWriter(d.writeMetrics)
	return d, nil
}

var (
	errPath   = &wire.Fault{Status: fasthttp.StatusNotFound, Text: "there is nothing but / and /health on the listener for JSON-RPC"}
	errMethod = &wire.Fault{Status: fasthttp.StatusMethodNotAllowed, Text: "calls of JSON-RPC are sent with POST /, and the health is asked for with GET /health"}
	errType   = &wire.Fault{Status: fasthttp.StatusUnsupportedMediaType, Text: "the content type must be application/json"}
)

// Answer makes the response to an exchange.
func (d *Door) Answer(x *httpd.Exchange) error {
	ctx := x.Context()
	path := ctx.Path()
	h := &ctx.Response.Header
	switch {
	case string(path) != "/" && string(path) != "/health":
		return errPath
	case ctx.IsOptions():
		h.Set(fasthttp.HeaderAccessControlAllowHeaders, "Content-Type, Authorization, X-API-Key, Cache-Control, traceparent, solana-client")
		h.Set(fasthttp.HeaderAccessControlMaxAge, "86400")
		x.Reply(fasthttp.StatusNoContent, nil, ledger.View{})
	case string(path) == "/health" && !ctx.IsGet() && !ctx.IsHead():
		h.Set(fasthttp.HeaderAllow, "GET, HEAD, OPTIONS")
		return errMethod
	case string(path) == "/health":
		x.ReplyType("text/plain; charset=utf-8")
		x.Reply(fasthttp.StatusOK, append(x.Room(0), d.health()...), ledger.View{})
	case ctx.IsGet() && d.config.Hub != nil && len(ctx.Request.Header.Peek(fasthttp.HeaderUpgrade)) > 0:
		return d.upgrade(x)
	case !ctx.IsPost():
		h.Set(fasthttp.HeaderAllow, "POST, OPTIONS")
		return errMethod
	case !isJSON(ctx.Request.Header.ContentType()):
		return errType
	default:
		return d.post(x)
	}
	return nil
}

// isJSON reports whether a content type is that of JSON, or none was sent.
func isJSON(contentType []byte) bool {
	kind, _, _ := bytes.Cut(contentType, []byte{';'})
	kind = bytes.TrimSpace(kind)
	return len(kind) == 0 || bytes.EqualFold(kind, []byte("application/json"))
}

// health returns what GET /health answers.
func (d *Door) health() string {
	switch s := d.config.Ledger.Status(); {
	case s.NotReady != nil:
		return "unknown"
	case s.Unhealthy != "":
		return "behind"
	}
	return "ok"
}

// post answers the calls in a body.
func (d *Door) post(x *httpd.Exchange) error {
	s := d.sessions.Get().(*session)
	s.door, s.x = d, x
	defer s.release()
	if err := s.reserve(x.Context().Request.Body()); err != nil {
		return err
	}
	calls, err := s.parse(x.Context().Request.Body())
	if err != nil {
		x.Reply(fasthttp.StatusOK, append(appendError(x.Room(0), errorOf(err, ledger.View{})), `,"id":null}`...), ledger.View{})
		return nil
	}
	if err := x.TakeMore(len(calls) - 1); err != nil {
		return err
	}
	body, view := s.answer(x.Room(answerText), calls)
	if x.Reply(fasthttp.StatusOK, body, view); s.goesOn != nil {
		x.Continue(s.goesOn)
	}
	return nil
}

// answerText is room for the answer of a call about one account.
const answerText = 1 << 10

// observe counts a call of a method, and how long its answer took.
func (m *method) observe(err error, began time.Time) {
	m.latency.Observe(time.Since(began))
	if err != nil {
		m.failed.Add(1)
	}
}
