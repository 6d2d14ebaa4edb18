package httpd

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"runtime/debug"

	"github.com/valyala/fasthttp"
	"github.com/valyala/fasthttp/pprofhandler"

	"ledgerd/engine/ledger"
)

// OpsConfig says what an ops server tells. Status and WriteMetrics are required.
type OpsConfig struct {
	Status       func() ledger.NodeStatus
	WriteMetrics func(w io.Writer)
	Pprof        bool         // serve /debug/pprof/
	Log          *slog.Logger // nil: silent
}

// OpsServer is the operator's side: /metrics, /livez, /readyz and, if wanted,
// /debug/pprof/. It counts and limits nobody and belongs on a loopback address.
type OpsServer struct {
	config OpsConfig
	*acceptor
}

// maxOpsConns is more than an operator's tools ever open.
const maxOpsConns = 256

// NewOps returns an ops server that serves nothing yet.
func NewOps(config OpsConfig) *OpsServer {
	if config.Log == nil {
		config.Log = slog.New(slog.DiscardHandler)
	}
	s := &OpsServer{config: config}
	s.acceptor = newAcceptor(listenerConfig{
		identity:   &identity{},
		timeouts:   timeouts{read: defaultReadTimeout, write: defaultWriteTimeout, idle: defaultIdleTimeout},
		maxConns:   maxOpsConns,
		maxPerPeer: maxOpsConns,
		log:        config.Log,
		meters:     new(meters),
	}, s.handle)
	return s
}

// handle is one exchange: no client is counted, and errors have the shape of the public
// side.
func (s *OpsServer) handle(ctx *fasthttp.RequestCtx) {
	h := &ctx.Response.Header
	h.SetCanonical(nameCacheControl, noCache)
	h.SetContentTypeBytes(typeJSON)
	defer func() {
		if v := recover(); v != nil {
			s.config.Log.Error("panic in an ops handler", "panic", fmt.Sprint(v), "stack", string(debug.Stack()))
			writeOpsError(ctx, errPanic)
		}
	}()
	if err := s.answer(ctx); err != nil {
		writeOpsError(ctx, err)
	}
}

func (s *OpsServer) answer(ctx *fasthttp.RequestCtx) error {
	if verdict := ctx.Conn().(*conn).verdict; verdict.refused() {
		return verdictErrors[verdict]
	}
	path := ctx.URI().PathOriginal()
	switch string(path) {
	case "/livez":
		ctx.SetBodyString(`{"status":"alive"}`)
	case "/readyz":
		if why := s.config.Status().Unhealthy; why != "" {
			return unhealthyError(why)
		}
		ctx.SetBodyString(`{"status":"ready"}`)
	case "/metrics":
		ctx.Response.Header.SetContentTypeBytes(typeMetrics)
		s.config.WriteMetrics(ctx.Response.BodyWriter())
	default:
		if !s.config.Pprof || !bytes.HasPrefix(path, []byte("/debug/pprof/")) {
			return errNoRoute
		}
		pprofhandler.PprofHandler(ctx)
	}
	return nil
}

func writeOpsError(ctx *fasthttp.RequestCtx, err error) {
	status, details := statusOf(err)
	ctx.SetStatusCode(status)
	ctx.Response.Header.SetContentTypeBytes(typeJSON)
	ctx.SetBody(appendError(nil, status, details))
}
