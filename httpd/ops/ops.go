// Package ops is the operators' side of the node: a listener of its own with /metrics, /livez,
// /readyz, /backup, /state, /snapshots/ in a cluster and, if wanted, /debug/pprof/. It counts and limits nobody and belongs on a loopback
// address or a Unix socket.
package ops

import (
	"bytes"
	"cmp"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"net/http/pprof"
	"runtime/debug"
	"sync/atomic"

	"github.com/valyala/fasthttp"
	"github.com/valyala/fasthttp/fasthttpadaptor"
	"github.com/valyala/fasthttp/pprofhandler"

	"ledgerd/engine/ledger"
	"ledgerd/httpd/encode"
	"ledgerd/httpd/promtext"
	"ledgerd/httpd/wire"
)

// Config says what a server tells. Status and WriteMetrics are required.
type Config struct {
	Status func() ledger.NodeStatus
	// Trouble returns what does not succeed between the node and its cluster, "" if nothing. It may name addresses, so operators alone are
	// told; nil: there is no cluster.
	Trouble      func() string
	WriteMetrics func(w io.Writer)
	Pprof        bool // serve /debug/pprof/
	// Backup returns what /backup sends, a tar stream, and how long it is; nil: there is no /backup.
	Backup func() (content io.ReadCloser, bytes int64, err error)
	// State returns what /state sends, and how long that is: the newest finalized block and the hash of the state at it, and if they are wanted
	// all accounts, of which it is not known how long they are, -1; nil: there is no /state.
	State func(accounts bool) (content io.ReadCloser, bytes int64, err error)
	// Snapshot opens what /snapshots/NAME sends, fs.ErrNotExist: there is none; nil: there is no /snapshots/.
	Snapshot func(name string) (File, error)
	Name     string // of the host as other nodes are told; "" for none

	TLS *tls.Config  // nil: connections are not encrypted
	Log *slog.Logger // nil: silent
}

// Server answers operators. Serve and Shutdown are those of its wire.Server.
type Server struct {
	*wire.Server
	config  Config
	sending atomic.Bool // a backup, or all accounts
	panics  atomic.Uint64
}

// maxConns is more than an operator's tools ever open.
const maxConns = 256

// New returns a server that serves nothing yet.
func New(config Config) *Server {
	config.Log = cmp.Or(config.Log, slog.New(slog.DiscardHandler))
	s := &Server{config: config}
	// The cap in all comes before that of a client, and makes room.
	s.Server = wire.New(wire.Config{Handler: s.handle, MaxConns: maxConns, MaxConnsPerClient: 2 * maxConns, TLS: config.TLS, Log: config.Log})
	return s
}

// handle is one exchange. Errors have the shape of the public side.
func (s *Server) handle(ctx *fasthttp.RequestCtx, _ *wire.Conn, fault *wire.Fault) {
	h := &ctx.Response.Header
	h.Set("Cache-Control", "no-cache")
	h.SetContentType("application/json")
	defer func() {
		if v := recover(); v != nil {
			s.panics.Add(1)
			s.config.Log.Error("panic in an ops handler", "panic", fmt.Sprint(v), "stack", string(debug.Stack()))
			writeError(ctx, fasthttp.StatusInternalServerError, "an unexpected error occurred")
		}
	}()
	if fault != nil {
		writeError(ctx, fault.Status, fault.Text)
		return
	}
	var unable error
	switch path := ctx.URI().PathOriginal(); {
	case len(ctx.Request.Header.Peek("Origin")) > 0 || s.config.TLS == nil && holdsSecrets(path) && !s.isOwnName(string(ctx.Host())):
		writeError(ctx, fasthttp.StatusForbidden, "pages of browsers are not answered here: ask for the node by its address")
	case !ctx.IsGet() && !ctx.IsHead():
		h.Set("Allow", "GET, HEAD")
		writeError(ctx, fasthttp.StatusMethodNotAllowed, "this listener answers GET and HEAD")
	case string(path) == "/livez":
		ctx.SetBodyString(`{"status":"alive"}`)
	case string(path) == "/readyz":
		s.ready(ctx)
	case string(path) == "/metrics":
		h.SetContentType("text/plain; version=0.0.4; charset=utf-8")
		s.config.WriteMetrics(ctx.Response.BodyWriter())
		promtext.Value(ctx.Response.BodyWriter(), "ledgerd_ops_panics_total", "counter", "Panics recovered in handlers of the operators' listener.", s.panics.Load())
	case string(path) == "/backup" && s.config.Backup != nil && hasUnknown(ctx, ""):
		writeError(ctx, fasthttp.StatusBadRequest, "there is no query parameter here")
	case string(path) == "/state" && s.config.State != nil && hasUnknown(ctx, "accounts"):
		writeError(ctx, fasthttp.StatusBadRequest, "there is no such query parameter here, but these: accounts")
	case string(path) == "/backup" && s.config.Backup != nil:
		unable = s.sendAlone(ctx, "application/x-tar", s.config.Backup)
	case string(path) == "/state" && s.config.State != nil:
		unable = s.state(ctx)
	case bytes.HasPrefix(path, []byte(snapshotsPath)) && s.config.Snapshot != nil:
		unable = s.snapshot(ctx, string(path[len(snapshotsPath):]))
	case bytes.HasPrefix(ctx.Path(), []byte("/debug/pprof/cmdline")): // as pprofhandler reads the path, however it is spelled
		writeError(ctx, fasthttp.StatusNotFound, "the command line may hold secrets, and is not shown")
	case s.config.Pprof && string(path) == "/debug/pprof/":
		pprofIndex(ctx)
	case s.config.Pprof && bytes.HasPrefix(path, []byte("/debug/pprof/")):
		pprofhandler.PprofHandler(ctx)
	default:
		writeError(ctx, fasthttp.StatusNotFound, "no such path on the operators' listener")
	}
	if unable != nil {
		writeError(ctx, fasthttp.StatusServiceUnavailable, unable.Error())
	}
}

// ready answers whether clients may be sent to the node.
func (s *Server) ready(ctx *fasthttp.RequestCtx) {
	status := s.config.Status()
	details := cmp.Or(status.Unhealthy, status.Degraded)
	if s.config.Trouble != nil {
		if trouble := s.config.Trouble(); details != "" && trouble != "" {
			details += "; " + trouble
		} else {
			details += trouble
		}
	}
	switch {
	case status.Unhealthy != "":
		writeError(ctx, fasthttp.StatusServiceUnavailable, details)
	case details != "":
		ctx.SetBody(append(encode.AppendString([]byte(`{"status":"ready","details":`), details), '}'))
	default:
		ctx.SetBodyString(`{"status":"ready"}`)
	}
}

// hasUnknown reports whether the query has another parameter than the known one: one that is misspelt must not be answered as if it were
// not there. Those that begin with an underscore are for others, as on the public side.
func hasUnknown(ctx *fasthttp.RequestCtx, known string) bool {
	for name := range ctx.QueryArgs().All() {
		if string(name) != known && !bytes.HasPrefix(name, []byte{'_'}) {
			return true
		}
	}
	return false
}

// pprofIndex lists the profiles: fasthttp's handler, by which all others are served, takes this path for no path.
var pprofIndex = fasthttpadaptor.NewFastHTTPHandlerFunc(pprof.Index)

func writeError(ctx *fasthttp.RequestCtx, status int, details string) {
	ctx.SetStatusCode(status)
	ctx.SetContentType("application/json")
	ctx.SetBody(encode.AppendError(nil, status, details))
}
